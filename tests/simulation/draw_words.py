"""What Broker-J's words say of queues, and what else queues and consumers can be like that came later."""

from __future__ import annotations

import json
from typing import Any

from tests.simulation.choices import (
    ALTERNATE,
    BYTES,
    CHOICES,
    COLOURS,
    DEFAULT_FILTERS,
    HELD_BACK,
    LATE,
    LEAST_TTL,
    LIFETIME,
    MOST,
    MOST_ATTEMPTS,
    MOST_TTL,
    NONDESTRUCTIVE,
    OWNER,
    STRATEGY,
)
from tests.simulation.feature import Feature
from tests.simulation.plan import Step

_LIMITS = frozenset({"x-max-length", "x-overflow", MOST, "x-qpid-capacity", "qpid.policy_type"})
_TIMES = frozenset({"x-message-ttl"})


class BrokerJ(Feature):
    """Queues whose limits, times and attempts are said in Broker-J's words, or count bytes."""

    SHARE = 0.06

    def queue(self, step: Step) -> None:
        arguments, rng = step["arguments"], self.rng
        # Not of those of dead letters: these would wait for ever where there is never room.
        if rng.random() < 0.4 and not _LIMITS & arguments.keys() and not step["queue"].startswith("dead"):
            arguments |= rng.choice([self._by_number(), self._by_bytes()])
        if rng.random() < 0.4 and "x-message-ttl" not in arguments:
            arguments[rng.choice([LEAST_TTL, MOST_TTL])] = rng.choice([200, 2000, 3_600_000])
        if rng.random() < 0.4 and "x-delivery-limit" not in arguments:
            arguments[MOST_ATTEMPTS] = rng.choice([1, 2, 4])

    def _by_number(self) -> Step:
        return {"qpid.policy_type": "REJECT", MOST: self.rng.choice([0, 1, 5, 20])}

    def _by_bytes(self) -> Step:
        overflow = self.rng.choice(["drop-head", "reject-publish", "reject-publish-dlx"])
        return {BYTES: self.rng.choice([0, 100, 2000]), "x-overflow": overflow}

    def publish(self, step: Step) -> None:
        if self.rng.random() < 0.2:
            step["ttl"] = self.rng.choice([0, 50, 1000])


class Alternates(Feature):
    """Queues whose dead letters go where Broker-J's word for it says; what expires, too."""

    SHARE = 0.06

    def queue(self, step: Step) -> None:
        arguments: dict[str, Any] = step["arguments"]
        # The exchange has to be there.
        if arguments.get("x-dead-letter-exchange") == "dlx" and self.rng.random() < 0.6:
            del arguments["x-dead-letter-exchange"]
            alternate: dict[str, Any] = {"destination": "dlx"}
            if (key := arguments.pop("x-dead-letter-routing-key", None)) is not None:
                alternate["attributes"] = {"routingKey": key}
            arguments |= {ALTERNATE: alternate, "expiryPolicy": "ROUTE_TO_ALTERNATE"}


class DefaultFilters(Feature):
    """Queues whose consumers select what the queue says, where they say nothing themselves."""

    SHARE = 0.06

    def __init__(self, seed: str, kind: str) -> None:
        super().__init__(seed, kind)
        self._filters: dict[str, str] = {}

    def queue(self, step: Step) -> None:
        """Not of those from which publishers are held back: who makes room in them takes all that there is."""
        if self.rng.random() < 0.4 and not step["arguments"].items() >= HELD_BACK.items():
            chosen = self._filters[step["queue"]] = self.rng.choice(list(CHOICES))
            step["arguments"][DEFAULT_FILTERS] = json.dumps({"chosen": {"x-filter-jms-selector": [chosen]}})

    def publish(self, step: Step) -> None:
        if self.rng.random() < 0.6:
            step["headers"] = {"colour": self.rng.choice(COLOURS), **step.get("headers", {})}

    def consume(self, step: Step) -> None:
        if (chosen := self._filters.get(step["queue"])) and "selector" not in step:
            step |= {"selector": chosen, "by_default": True}


class Replays(Feature):
    """Consumers that want what came lately, and what comes."""

    SHARE = 0.06

    def consume(self, step: Step) -> None:
        if self.rng.random() < 0.4:
            step["replay"] = self.rng.choice([0, 1, 5, 60])


class AtLeastOnce(Feature):
    """Queues whose dead letters wait for a way, which there is in the end."""

    SHARE = 0.05

    def __init__(self, seed: str, kind: str) -> None:
        super().__init__(seed, kind)
        self._some = False

    def queue(self, step: Step) -> None:
        arguments, rng = step["arguments"], self.rng
        if rng.random() > 0.4 or (_LIMITS | {"x-dead-letter-exchange"}) & arguments.keys() or step["queue"][0] == "d":
            return
        self._some = True
        arguments |= {"x-dead-letter-exchange": LATE, STRATEGY: "at-least-once", "x-overflow": "reject-publish"}
        if rng.random() < 0.5:
            arguments["x-max-length"] = rng.choice([0, 1, 5, 20])
        if rng.random() < 0.5 and not _TIMES & arguments.keys():
            arguments["x-message-ttl"] = rng.choice([100, 2000])

    def steps(self) -> list[Step]:
        if not self._some:
            return []
        return [
            {"do": "exchange", "exchange": LATE, "type": "fanout"},
            {"do": "queue", "queue": f"{LATE}-1", "arguments": {}},
            {"do": "bind", "source": LATE, "to": f"{LATE}-1", "key": ""},
        ]


class Circles(Feature):
    """Queues whose dead letters go to another one by its name, from which they may come back."""

    SHARE = 0.05

    def __init__(self, seed: str, kind: str) -> None:
        super().__init__(seed, kind)
        self._before = ""

    def queue(self, step: Step) -> None:
        arguments: dict[str, Any] = step["arguments"]
        if self.rng.random() < 0.5 and "x-dead-letter-exchange" not in arguments and NONDESTRUCTIVE not in arguments:
            to = self._before or step["queue"]
            arguments |= {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
            self._before = step["queue"] if self.rng.random() < 0.7 else ""


class Lives(Feature):
    """Queues of a user, and of sessions; and those that go with their last consumer, which an argument says."""

    SHARE = 0.06

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.4:
            step["arguments"][OWNER] = self.rng.choice(["PRINCIPAL", "NONE"])
        if step.get("auto_delete") and self.rng.random() < 0.5:
            del step["auto_delete"]
            step["arguments"][LIFETIME] = self.rng.choice(["DELETE_ON_NO_LINKS", "DELETE_ON_NO_OUTBOUND_LINKS"])

    def own(self, step: Step) -> None:
        if self.rng.random() < 0.6:
            step["session"] = self.rng.choice([OWNER, LIFETIME])


class Parties(Feature):
    """Queues of one consumer at a time, whoever comes first, and of an application, which all clients are."""

    SHARE = 0.06

    def __init__(self, seed: str, kind: str) -> None:
        super().__init__(seed, kind)
        self._alone = set[str]()

    def queue(self, step: Step) -> None:
        if self.rng.random() < 0.5 and OWNER not in step["arguments"]:
            owner = step["arguments"][OWNER] = self.rng.choice(["LINK", "LINK", "CONTAINER"])
            if owner == "LINK":
                self._alone.add(step["queue"])

    def consume(self, step: Step) -> None:
        if step["queue"] in self._alone:
            step["alone"] = True
