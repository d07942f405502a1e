"""Makes a history that fails shorter: fewer faults, steps, messages, queues, a smaller cluster; what it breaks stays.

What is left out shifts the scheduler's draws, so each candidate is tried with some seeds for the world besides its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.simulation.plan import Plan, Step

Fails = Callable[[Plan], bool]

_SHAPES: tuple[dict[str, Any], ...] = ({"routers": 1}, {"gateways": 1}, {"gateways": 2}, {"queue_processes": 2})
_COUNTS = {"gateway": "gateways", "router": "routers", "queue": "queue_processes"}


class Shrinker:
    """`fails` runs a plan; `runs` bounds how often."""

    def __init__(self, fails: Fails, runs: int = 200, seeds: int = 2) -> None:
        self._fails = fails
        self._left = runs
        self._seeds = seeds

    def shrink(self, plan: Plan) -> Plan:
        """The shortest that was found; fails like the plan itself."""
        before = None
        while plan != before and self._left > 0:
            before = plan
            for part in ("faults", "steps", "topology"):
                plan = self._without(plan, part)
            plan = self._smaller(plan)
        return _tidy(plan)

    def _try(self, plan: Plan) -> Plan | None:
        """The candidate, with the seed under which it fails."""
        for number in range(self._seeds):
            if self._left <= 0:
                return None
            self._left -= 1
            candidate = plan.but(seed=plan.seed + number * 1_000_003)
            if self._fails(candidate):
                return candidate
        return None

    def _without(self, plan: Plan, part: str) -> Plan:
        """Leaves out halves, quarters, … of a list, down to single ones."""
        size = max(1, len(getattr(plan, part)) // 2)
        while self._left > 0:
            at = 0
            while at < len(whole := getattr(plan, part)) and self._left > 0:
                found = self._try(plan.but(**{part: whole[:at] + whole[at + size :]}))
                if found:
                    plan = found
                else:
                    at += size
            if size == 1:
                break
            size = max(1, size // 2)
        return plan

    def _smaller(self, plan: Plan) -> Plan:
        for candidate in _smaller(plan):
            if self._left <= 0:
                break
            merged = candidate(plan)
            if merged != plan and (found := self._try(merged)):
                plan = found
        return plan


def _smaller(plan: Plan) -> Iterator[Callable[[Plan], Plan]]:
    """Ways to make single things smaller."""
    for shape in _SHAPES:
        if all(plan.shape.get(name, 0) > value for name, value in shape.items()):
            yield lambda now, shape=shape: _fit(now.but(shape={**now.shape, **shape}))
    for index, step in enumerate(plan.steps):
        if step.get("count", 1) > 1:
            for count in (1, step["count"] // 2):
                yield lambda now, index=index, count=count: _with(now, index, {"count": count})
        if step.get("size", 0) > 100:
            yield lambda now, index=index: _with(now, index, {"size": 20})


def _with(plan: Plan, index: int, change: Step) -> Plan:
    steps = list(plan.steps)
    if index < len(steps):
        steps[index] = {**steps[index], **change}
    return plan.but(steps=steps)


def _fit(plan: Plan) -> Plan:
    """Clients on gateways that there are, and faults of processes that there are."""
    clients = [{**client, "gateway": client["gateway"] % plan.shape["gateways"]} for client in plan.clients]
    return plan.but(clients=clients, faults=_possible(plan.faults, plan.shape))


def _possible(faults: list[Step], shape: dict[str, Any]) -> list[Step]:
    """Without what befalls a process that is not there, also of what an ambush springs."""
    there = [fault for fault in faults if all(_is_there(str(name), shape) for name in fault.get("args", ()))]
    return [{**fault, "then": _possible(fault["then"], shape)} if "then" in fault else fault for fault in there]


def _is_there(name: str, shape: dict[str, Any]) -> bool:
    role, _, number = name.rpartition("-")
    return role not in _COUNTS or int(number) <= shape.get(_COUNTS[role], int(number))


def _tidy(plan: Plan) -> Plan:
    """Without clients that do nothing; the first of a virtual host declares its objects."""
    busy = {step["client"] for step in plan.steps}
    seen: set[str] = set()
    clients = []
    for client in plan.clients:
        if client["name"] in busy or client["host"] not in seen:
            clients.append(client)
        seen.add(client["host"])
    return plan.but(clients=clients)
