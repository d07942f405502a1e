"""Transactions of clients of AMQP 1.0: drawn apart, over steps that there are anyway."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.feature import to_queue
from tests.simulation.plan import Step

SHARE: Final = 0.4  # of histories with such clients
_NAMES: Final = ("x", "y", "z")  # of those that a session has at once
_JOIN: Final = {"publish": 0.6, "consume": 0.5, "subscribe": 0.5, "settle": 0.5}  # share of steps that are part of one
_TO_QUEUES: Final = 0.7  # of the publishes
_ENDS: Final = 0.4  # of steps, after which one of a client's latest is discharged, …
_FAILS: Final = 0.2  # … and rolled back; of the others a share …
_GONE: Final = 0.15  # … by a client that is gone before it hears of it, or soon after; …
_GONE_IN: Final = (0.0, 0.003, 0.01, 0.03)  # seconds
_LEAVES: Final = 0.04  # … goes with its coordinator


def transacted(seed: str, steps: list[Step], queues: list[str]) -> list[Step]:
    """The same steps, some in transactions, in some histories. What is for no queue keeps one from being committed: so
    more of what is published in them goes to one of these.
    """
    rng, found = Random(f"transactions of links {seed}"), list[Step]()
    if rng.random() > SHARE:
        return steps
    names = _NAMES[: rng.choice([1, 2, 3, 3])]
    used: dict[str, list[Step]] = {}
    for step in steps:
        joins = rng.random() < _JOIN.get(step["do"], 0.0)
        found.append({**step, "in": rng.choice(names)} if joins else step)
        if joins and step["do"] == "publish" and rng.random() < _TO_QUEUES:
            to_queue(found[-1], rng.choice(queues))
        if joins:
            used.setdefault(step["client"], []).append({"channel": step["channel"], "in": found[-1]["in"]})
        if used and rng.random() < _ENDS:
            client = rng.choice(list(used))
            found.append({"client": client, **_end(rng, rng.choice(used[client][-len(names) :]))})
    return found


def _end(rng: Random, one: Step) -> Step:
    if rng.random() < _LEAVES:
        return {"do": "undeclare", "channel": one["channel"]}
    if rng.random() < _FAILS:
        return {"do": "discharge", **one, "fail": True}
    return {"do": "discharge", **one, **({"gone": rng.choice(_GONE_IN)} if rng.random() < _GONE else {})}
