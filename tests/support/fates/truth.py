"""What truly became of messages, as the clients saw it that published and consumed them: the record has no part in it.

A copy is a message in one queue. Times are of the wall clock, in seconds.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

IN_DOUBT, CONFIRMED, REFUSED, RETURNED, ROLLED_BACK = "", "confirmed", "refused", "returned", "rolled_back"
ACKED, REJECTED = "acked", "rejected"

Copy: TypeAlias = tuple[str, str]
"""The message's name, and its queue; "" where it has none."""


class Kind(NamedTuple):
    """How messages of one sort are published, and where they belong."""

    exchange: str
    key: str
    targets: tuple[str, ...]
    persistent: bool = True
    priority: int | None = None
    expiration: int | None = None  # ms
    mandatory: bool = False


@dataclass(slots=True)
class Publication:
    """One message: what its publisher was told, and when."""

    name: str
    kind: Kind
    outcome: str = IN_DOUBT
    told_at: float = float("inf")


@dataclass(frozen=True, slots=True)
class Queue:
    """What a queue does with messages that no consumer takes."""

    name: str
    arguments: dict[str, object] = field(default_factory=dict)
    consumed: str = ""  # the consumer

    @property
    def dead(self) -> str:
        """Where its dead letters go; "" where it has none."""
        return str(self.arguments.get("x-dead-letter-routing-key", ""))

    @property
    def refuses(self) -> bool:
        return self.arguments.get("x-overflow") == "reject-publish"

    @property
    def drops(self) -> bool:
        return "x-max-length" in self.arguments and not self.refuses


class Death(NamedTuple):
    """A process that was killed, or a link that was cut."""

    what: str
    at: float


class Truth:
    """Filled by the clients of a run."""

    def __init__(self, queues: dict[str, Queue]) -> None:
        self.queues = queues
        self.messages: dict[str, Publication] = {}
        self.deaths: list[Death] = []
        self.left: set[Copy] = set()
        """What was in its queue when all was over."""
        self.depths: Counter[str] = Counter()
        """How many were in each queue then."""
        self._acts: defaultdict[Copy, dict[str, float]] = defaultdict(dict)
        self.twice: set[Copy] = set()
        """What was delivered after its consumer had settled it, or was in its queue twice."""

    def published(self, name: str, kind: Kind) -> Publication:
        """It is about to be."""
        self.messages[name] = Publication(name, kind)
        return self.messages[name]

    def told(self, publication: Publication, outcome: str) -> None:
        """What its publisher heard first counts: what is returned is confirmed too."""
        if publication.outcome == IN_DOUBT:
            publication.outcome, publication.told_at = outcome, time.time()

    def delivered(self, name: str, queue: str) -> None:
        """A consumer has it."""
        acts = self._acts[name, queue]
        if ACKED in acts or REJECTED in acts:
            self.twice.add((name, queue))

    def found(self, copy: Copy) -> None:
        """It was there when all was over."""
        if copy in self.left:
            self.twice.add(copy)
        self.left.add(copy)
        self.depths[copy[1]] += 1

    def settled(self, name: str, queue: str, act: str) -> None:
        """Its consumer has said so, which the broker may not have heard."""
        self._acts[name, queue][act] = time.time()

    def died(self, what: str) -> None:
        self.deaths.append(Death(what, time.time()))

    def acts(self, copy: Copy) -> dict[str, float]:
        """What consumers did with a copy, and when last."""
        return self._acts.get(copy, {})

    def gone(self, ending: str) -> set[Copy]:
        """Transient messages that were safe, and are not left in queues whose names end so, which have no consumer."""
        safe = (one for one in self.messages.values() if one.outcome == CONFIRMED and not one.kind.persistent)
        copies = {(one.name, queue) for one in safe for queue in one.kind.targets if queue.endswith(ending)}
        return copies - self.left

    def copies_of(self, name: str) -> set[Copy]:
        """All that may have been of a message: where it was to go, and where it was seen."""
        seen = {(name, queue) for queue in self.queues if (name, queue) in self._acts or (name, queue) in self.left}
        return seen | {(name, queue) for queue in self.messages[name].kind.targets}
