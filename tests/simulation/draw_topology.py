"""Exchanges, queues and bindings of a plan, and what they allow load to name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.plan import Step

TO_MANY = frozenset({"fan-out", "bulk", "leases"})
"""Kinds of history in which persistent messages go to several queues, and are confirmed."""

_KEYS = ["a", "b", "a.b", "a.c", "a.b.c", "d"]
_PATTERNS = ["#", "a.*", "*.b", "a.#", "a.b", "*.*.c", "a", "d.#"]
_HEADERS: list[dict[str, Any]] = [{}, {"h": 1}, {"h": 2, "g": "x"}, {"g": "x"}, {"h": 1, "g": "y", "x-t": "z"}]
_CONDITIONS: list[dict[str, Any]] = [
    {"h": 1}, {"x-match": "any", "h": 2, "g": "y"}, {"x-match": "all", "h": 2, "g": "x"}, {"g": None},
    {"x-match": "any-with-x", "x-t": "z"}, {"x-match": "all-with-x", "h": 1, "x-t": "z"},
]  # fmt: skip
_MOST_GROWN = 6  # queues
_TO_GROWN = 0.5  # share of what goes to a queue by its name, once there are such


@dataclass
class Drawn:
    """`steps` declare it all. `stable` queues have no end of their own."""

    steps: list[Step] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    stable: list[str] = field(default_factory=list)
    exchanges: dict[str, str] = field(default_factory=dict)  # name → type
    own: list[str] = field(default_factory=list)
    direct_share: float = 0.3
    plain: list[str] = field(
        default_factory=list
    )  # exchanges that matter to no alternate: what goes may be bound there
    deleted: dict[str, Step] = field(default_factory=dict)
    bindings: list[Step] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)  # declared while messages flow

    def queue(self, rng: Random) -> str:
        return rng.choice(self.queues)

    def plain_source(self, rng: Random) -> tuple[str, str]:
        """Where queues that come and go are bound."""
        return rng.choice(self.plain), rng.choice(_KEYS)

    def destination(self, rng: Random) -> Step:
        """Exchange, keys and headers of a publish."""
        if rng.random() < self.direct_share or not self.exchanges:
            if self.grown and rng.random() < _TO_GROWN:
                return {"exchange": "", "keys": [rng.choice(self.grown)]}
            many = rng.random() < 0.2
            return {"exchange": "", "keys": [self.queue(rng) for _ in range(3 if many else 1)]}
        exchange = rng.choice(list(self.exchanges))
        step: Step = {"exchange": exchange, "keys": rng.sample(_KEYS, rng.choice([1, 1, 3]))}
        if rng.random() < (0.8 if self.exchanges[exchange] == "headers" else 0.1):
            step["headers"] = rng.choice(_HEADERS)
        return step

    def more_keys(self, rng: Random, exchange: str) -> dict[str, Any]:
        """Headers that name further keys of a publish: shown, hidden, or both."""
        names = rng.choice([["CC"], ["BCC"], ["CC", "BCC"]])
        return {
            name: [rng.choice(_KEYS) if exchange else self.queue(rng) for _ in range(rng.choice([1, 1, 3]))]
            for name in names
        }

    def grow(self) -> Step | None:
        """Another durable queue, while messages flow."""
        if len(self.grown) == _MOST_GROWN:
            return None
        name = f"new-{len(self.grown)}"
        self.grown.append(name)
        self.queues.append(name)
        return {"do": "queue", "queue": name, "arguments": {}}

    def change(self, rng: Random) -> Step | None:
        """A change while messages flow: something is deleted, declared again, bound or unbound."""
        roll = rng.random()
        if self.deleted and roll < 0.4:
            name = rng.choice(list(self.deleted))
            return self.deleted.pop(name)
        if roll < 0.6 and len(self.stable) > 1:
            name = rng.choice(self.stable)
            declare = next(step for step in self.steps if step["do"] == "queue" and step["queue"] == name)
            self.deleted[name] = declare
            return {"do": "delete_queue", "queue": name}
        if self.bindings and roll < 0.8:
            return {**rng.choice(self.bindings), "do": "unbind"}
        return dict(rng.choice(self.bindings)) if self.bindings else None


def draw_topology(rng: Random, kind: str) -> Drawn:
    """One virtual host's."""
    drawn = Drawn()
    if kind in {"fan-out", "leases"}:
        count = rng.choice([3, 6, 12, 20])
    elif kind == "bulk":
        count = rng.choice([3, 6])
    else:
        count = rng.choice([1, 2, 4, 8, 8, 30])
    features = {
        name: rng.random() < 0.2 for name in ("length", "ttl", "single", "limit", "priority", "auto", "expires")
    }
    features["letters"] = kind == "letters" or rng.random() < 0.15
    features["transient"] = rng.random() < 0.3
    if kind in TO_MANY and rng.random() < 0.8:
        features = dict.fromkeys(features, False)
    if features["letters"]:
        _dead_letters(rng, drawn)
    for number in range(count):
        _queue(rng, drawn, f"q{number}", features)
    _exchanges(rng, drawn, kind)
    return drawn


def _dead_letters(rng: Random, drawn: Drawn) -> None:
    drawn.steps.append({"do": "exchange", "exchange": "dlx", "type": rng.choice(["fanout", "direct"])})
    for name in ["dead-1", "dead-2"][: rng.randint(1, 2)]:
        drawn.steps.append({"do": "queue", "queue": name})
        drawn.queues.append(name)
        for key in ["", "dead", *_KEYS]:
            if key in {"", "dead"} or rng.random() < 0.5:
                drawn.steps.append({"do": "bind", "source": "dlx", "to": name, "key": key})


def _letters(rng: Random) -> dict[str, Any]:
    key = {"x-dead-letter-routing-key": "dead"} if rng.random() < 0.5 else {}
    return {"x-dead-letter-exchange": "dlx", **key}


def _length(rng: Random) -> dict[str, Any]:
    overflow = rng.choice(["drop-head", "reject-publish", "reject-publish-dlx"])
    return {"x-max-length": rng.choice([0, 1, 5, 20, 100]), "x-overflow": overflow}


# Of queues in histories that have the feature, how many have it, and what it is.
_ARGUMENTS: dict[str, tuple[float, Callable[[Random], dict[str, Any]]]] = {
    "length": (0.5, _length),
    "ttl": (0.5, lambda rng: {"x-message-ttl": rng.choice([0, 100, 2000, 3_600_000])}),
    "single": (0.5, lambda rng: {"x-single-active-consumer": True}),
    "limit": (0.5, lambda rng: {"x-delivery-limit": rng.choice([0, 1, 3])}),
    "priority": (0.5, lambda rng: {"x-max-priority": rng.choice([1, 5, 10])}),
    "letters": (0.8, _letters),
    "expires": (0.15, lambda rng: {"x-expires": rng.choice([500, 3000])}),
}


def _queue(rng: Random, drawn: Drawn, name: str, features: dict[str, bool]) -> None:
    arguments: dict[str, Any] = {}
    for feature, (share, draw) in _ARGUMENTS.items():
        if features[feature] and rng.random() < share:
            arguments |= draw(rng)
    step: Step = {"do": "queue", "queue": name, "arguments": arguments}
    if features["transient"] and rng.random() < 0.5:
        step["durable"] = False
    if features["auto"] and rng.random() < 0.3:
        step["auto_delete"] = True
    drawn.steps.append(step)
    drawn.queues.append(name)
    if not step.get("auto_delete") and "x-expires" not in arguments:
        drawn.stable.append(name)


def _exchanges(rng: Random, drawn: Drawn, kind: str) -> None:
    kinds = ["fanout", "direct", "topic", "headers"]
    chosen = ["fanout"] if kind in TO_MANY else rng.sample(kinds, rng.randint(0, 4))
    drawn.direct_share = 0.1 if kind in TO_MANY else rng.choice([0.1, 0.3, 0.7])
    drawn.plain.append("amq.topic")
    for type_ in chosen:
        name = f"x-{type_}"
        _exchange(drawn, name, type_, {}, durable=rng.random() < 0.9)
        share = 1.0 if type_ == "fanout" else rng.choice([0.3, 1.0])
        for queue in drawn.queues:
            if rng.random() < share and not queue.startswith("dead"):
                _bind(drawn, name, queue, *_binding(rng, type_))
        drawn.plain.append(name)
    if kind in TO_MANY:
        return
    if chosen and rng.random() < 0.4:
        # Exchange to exchange, perhaps in a circle.
        _exchange(drawn, "x-first", "topic", {})
        for name in chosen:
            _bind(drawn, "x-first", f"x-{name}", rng.choice(_PATTERNS), {}, to_exchange=True)
        if rng.random() < 0.3:
            _bind(drawn, f"x-{chosen[0]}", "x-first", *_binding(rng, chosen[0]), to_exchange=True)
    if drawn.stable and rng.random() < 0.3:
        _exchange(drawn, "x-rest", "fanout", {})
        _bind(drawn, "x-rest", rng.choice(drawn.stable), "", {})
        _exchange(drawn, "x-picky", "direct", {"alternate-exchange": "x-rest"})
        _bind(drawn, "x-picky", rng.choice(drawn.stable), "a", {})


def _exchange(drawn: Drawn, name: str, type_: str, arguments: dict[str, Any], *, durable: bool = True) -> None:
    step: Step = {"do": "exchange", "exchange": name, "type": type_, "arguments": arguments}
    drawn.steps.append(step if durable else {**step, "durable": False})
    drawn.exchanges[name] = type_


def _bind(
    drawn: Drawn, source: str, to: str, key: str, arguments: dict[str, Any], *, to_exchange: bool = False
) -> None:
    step: Step = {"do": "bind", "source": source, "to": to, "key": key, "arguments": arguments}
    if to_exchange:
        step["to_exchange"] = True
    drawn.steps.append(step)
    if not to_exchange and to in drawn.stable:
        drawn.bindings.append(step)


def _binding(rng: Random, type_: str) -> tuple[str, dict[str, Any]]:
    if type_ == "headers":
        return "", rng.choice(_CONDITIONS)
    return (rng.choice(_PATTERNS) if type_ == "topic" else rng.choice(_KEYS)), {}
