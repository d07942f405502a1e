"""What some histories have besides, each a feature of its own, drawn apart: so all else of a seed is as without it."""

from __future__ import annotations

import json
from random import Random
from typing import ClassVar

from tests.simulation.choices import (
    HELD_BACK,
    HOLDS,
    KEY,
    LAST_VALUE,
    LEVELS,
    LIVE,
    MOST,
    NO_LOCAL,
    NONDESTRUCTIVE,
    ONCE,
    RANK,
    RING,
    SINGLE,
    SORTED,
    TIMEOUT,
)
from tests.simulation.draw_words import (
    Alternates,
    AtLeastOnce,
    BrokerJ,
    Circles,
    DefaultFilters,
    Lives,
    Parties,
    Replays,
)
from tests.simulation.feature import Feature, to_queue
from tests.simulation.plan import Step


class Delays(Feature):
    """Messages that say when they may be delivered, and queues that heed it."""

    SHARE = 0.08
    _HOLDING = 0.6  # share of queues

    def __init__(self, seed: str, kind: str) -> None:
        super().__init__(seed, kind)
        self._names: list[str] = []

    def queue(self, step: Step) -> None:
        if self.rng.random() < self._HOLDING:
            self._names.append(step["queue"])
            step["arguments"][HOLDS] = True

    def publish(self, step: Step) -> None:
        """Also some to one queue that are all due at once."""
        rng = self.rng
        if rng.random() < 0.5:
            step["delay"] = rng.choice([1, 50, 300, 1000, 1000, 3000])
            if rng.random() < 0.4:
                step["dated"] = True
        elif rng.random() < 0.2 and self._names:
            to_queue(step, rng.choice(self._names))
            step |= {"count": 12, "delay": rng.choice([300, 1000]), "dated": True}

    def consume(self, step: Step) -> None:
        """Also some who take all that there is."""
        if self._names and "credit" not in step and self.rng.random() < 0.3:
            step |= {"channel": "free", "mode": "plain", "queue": self.rng.choice(self._names)}
            step.pop("prefetch", None)

    def faults(self, seconds: float, shape: Step) -> list[Step]:
        """A clock is set, in some: gateways and owners both look at theirs."""
        if self.rng.random() > 0.2:
            return []
        role, count = self.rng.choice([("gateway", shape["gateways"]), ("queue", shape["queue_processes"])])
        at, name = round(self.rng.uniform(0, seconds), 3), f"{role}-{self.rng.randint(1, count)}"
        return [
            {"at": at, "do": "jump_clock", "args": [name], "seconds": self.rng.choice([-3600.0, -2.0, 2.0, 3600.0])}
        ]


class HeldBack(Feature):
    """Queues whose publishers are held back while too much waits in them. No consumer has one of them for itself."""

    SHARE = 0.06
    _SUCH = 0.4  # share of queues
    _ALONE = frozenset({"x-max-length", "x-single-active-consumer", "qpid.group_header_key", "x-expires"})

    def __init__(self, seed: str, kind: str) -> None:
        super().__init__(seed, kind)
        self._names: list[str] = []

    def queue(self, step: Step) -> None:
        if self.rng.random() < self._SUCH and not self._ALONE & step["arguments"].keys():
            self._names.append(step["queue"])
            step["arguments"] |= HELD_BACK | self.rng.choice(
                [
                    {MOST: self.rng.choice([0, 1, 5, 20])},
                    {MOST: self.rng.choice([0, 1, 5, 20])},
                    {"x-qpid-capacity": 500, "x-qpid-flow-resume-capacity": self.rng.choice([0, 100, 400])},
                ]
            )

    def publish(self, step: Step) -> None:
        """To one of them, for some time, or more than it wants in a transaction."""
        if self._names and self.rng.random() < (0.4 if step.get("mode") == "tx" else 0.1):
            to_queue(step, self.rng.choice(self._names))
            pace = self.rng.choice([0.1, 0.3])
            step |= {"count": 8, "pace": 0.0 if step.get("mode") == "tx" else pace}

    def consume(self, step: Step) -> None:
        step.pop("exclusive", None)


class Browsers(Feature):
    """Consumers that see what waits and take nothing; queues of which all are such."""

    SHARE = 0.07

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.15 and not step["arguments"].items() >= HELD_BACK.items():
            step["arguments"][NONDESTRUCTIVE] = True

    def consume(self, step: Step) -> None:
        if self.rng.random() < 0.5:
            step["browse"] = True


class Timeouts(Feature):
    """Queues whose consumers have so long for each delivery."""

    SHARE = 0.06

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.5:
            step["arguments"][TIMEOUT] = self.rng.choice([100, 500, 2000])


class NoLocal(Feature):
    """Consumers that do not want what their own connections publish; queues of which all are such."""

    SHARE = 0.06

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.15:
            step["arguments"][NO_LOCAL] = True

    def consume(self, step: Step) -> None:
        if self.rng.random() < 0.5:
            step["no_local"] = self.rng.choice(["field", "argument"])


class Orders(Feature):
    """Queues in another order than that of arrival, and of last values."""

    SHARE = 0.08

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.5 and "x-max-priority" not in step["arguments"]:
            levels = {LEVELS: self.rng.choice([1, 2, 4, 10])}
            step["arguments"] |= self.rng.choice([{SORTED: RANK}, {LAST_VALUE: RANK}, levels])

    def publish(self, step: Step) -> None:
        if self.rng.random() < 0.8:
            step["headers"] = {**step.get("headers", {}), RANK: self.rng.choice(["a", "b", "c", "", 7, 12])}
        if self.rng.random() < 0.3:
            step["priority"] = self.rng.randint(0, 9)


class FewLive(Feature):
    """Queues of which some consumers are live, and the others wait."""

    SHARE = 0.06

    def queue(self, step: Step) -> None:
        held_back = step["arguments"].items() >= HELD_BACK.items()  # its few live ones may be held back themselves
        if self.rng.random() < 0.5 and SINGLE not in step["arguments"] and not held_back:
            step["arguments"][LIVE] = self.rng.choice([2, 2, 3])

    def consume(self, step: Step) -> None:
        if self.rng.random() < 0.5:
            step.pop("exclusive", None)


class Retries(Feature):
    """Queues of which what came back waits, longer with each attempt."""

    SHARE = 0.06

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.5:
            step["arguments"] |= {
                "x-delayed-retry-type": self.rng.choice(["failed", "returned", "all"]),
                "x-delayed-retry-min": self.rng.choice([1, 50, 300]),
                "x-delayed-retry-max": self.rng.choice([300, 1000]),
            }


class Rings(Feature):
    """Queues of which the oldest goes when there is too much, though somebody holds it; it is no dead letter."""

    SHARE = 0.06
    _NOT = frozenset({"x-max-length", "x-overflow", "x-dead-letter-exchange", "x-delivery-limit", MOST})

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.5 and not (self._NOT | HELD_BACK.keys()) & step["arguments"].keys():
            step["arguments"] |= {"x-max-length": self.rng.choice([0, 1, 5, 20]), **RING}


class Once(Feature):
    """Queues that take each key once, and publishes of which some have one key: again, or in another's name."""

    SHARE = 0.06

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.5:
            step["arguments"] |= {ONCE: True, "x-cache-size": 1000}

    def publish(self, step: Step) -> None:
        if self.rng.random() < 0.4:
            step["headers"] = {**step.get("headers", {}), KEY: self.rng.choice(["a", "b", 7, *range(100, 120)])}


class Policies(Feature):
    """Policies that come and go, and limit nothing that a history reaches: queues take over what they say meanwhile."""

    SHARE = 0.08
    _SAYS: ClassVar[list[dict[str, object]]] = [
        {"max-length": 10**6},
        {"max-length": 10**6, "overflow": "reject-publish"},
        {"max-length": 10**6, "overflow": "ring"},
        {"max-length-bytes": 10**9, "overflow": "producer-flow-control"},
        {"message-ttl": 10**9, "delivery-limit": 1000},
        {"delayed-retry-type": "all", "delayed-retry-min": 50, "delayed-retry-max": 300},
    ]

    _LIMITS = frozenset({"max-length", "max-length-bytes", "message-ttl", "delivery-limit"})
    """What an operator's policy may say; what is cleared may be one, too."""

    def __init__(self, seed: str, kind: str) -> None:
        super().__init__(seed, kind)
        self._host, self.by_operators = seed.rsplit(" ", 1)[-1], Random(f"operators {seed}")
        self._names: list[str] = []

    def queue(self, step: Step) -> None:
        """Those with a limit of their own are left alone."""
        if not any(word in name for name in step["arguments"] for word in ("max-length", "overflow", "qpid.")):
            self._names.append(step["queue"])

    def faults(self, seconds: float, shape: Step) -> list[Step]:
        del shape
        rng, found = self.rng, list[Step]()
        for _ in range(rng.randint(2, 8) if self._names else 0):
            pattern = "^(" + "|".join(rng.sample(self._names, rng.randint(1, len(self._names)))) + ")$"
            says = rng.choice([*self._SAYS, {}])
            args = [self._host, rng.choice("ab"), pattern, json.dumps(says)]
            if says.keys() <= self._LIMITS and self.by_operators.random() < 0.4:
                args.append("operator")
            found.append({"at": round(rng.uniform(0, seconds), 3), "do": "policy", "args": args})
        return found


FEATURES: tuple[type[Feature], ...] = (
    Delays,
    HeldBack,
    Browsers,
    Timeouts,
    NoLocal,
    Orders,
    FewLive,
    Retries,
    Rings,
    Policies,
    Once,
    BrokerJ,
    DefaultFilters,
    Replays,
    AtLeastOnce,
    Circles,
    Lives,
    Parties,
    Alternates,
)


class Features:
    """All that a virtual host's load has."""

    def __init__(self, seed: str, kind: str) -> None:
        self._on = [feature for feature in (make(seed, kind) for make in FEATURES) if feature.on]

    def queues(self, steps: list[Step]) -> None:
        """Of a topology."""
        for step in steps if self._on else ():
            if step["do"] == "queue":
                step.setdefault("arguments", {})
                for feature in self._on:
                    feature.queue(step)

    def publish(self, step: Step) -> None:
        """As Feature says."""
        for feature in self._on:
            feature.publish(step)

    def consume(self, step: Step) -> None:
        """As Feature says."""
        for feature in self._on:
            feature.consume(step)

    def own(self, step: Step) -> None:
        """As Feature says."""
        for feature in self._on:
            feature.own(step)

    def steps(self, client: str) -> list[Step]:
        """As Feature says."""
        return [{"client": client, **step} for feature in self._on for step in feature.steps()]

    def faults(self, seconds: float, shape: Step) -> list[Step]:
        """As Feature says."""
        return [fault for feature in self._on for fault in feature.faults(seconds, shape)]
