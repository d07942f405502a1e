"""What a client wants done together, or not at all: what a transaction collects, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.common.clients.change import UNCHANGED, Change
from services.common.clients.outbound import Messages
from services.common.errors import BrokerError, PreconditionFailed
from services.common.message.indexes import condensed
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.gateway.observe.observer import Followed
    from services.gateway.sessions.consumer import Consumer, GetHolder
    from services.gateway.vocabulary import Publish

_LARGEST = 64 << 20
_MOST_ANNOTATED = 20  # a queue process writes each anew when it prepares, and again: one turn of its event loop


@dataclass(slots=True)
class PendingSettlement:
    """One settlement that waits for the commit."""

    number: int
    holder: Consumer | GetHolder
    uid: int
    outcome: pb.Outcome.ValueType
    change: Change = UNCHANGED


@dataclass(slots=True)
class Publication:
    """What a request publishes, at once or with the commit; numbers of messages are indexes of its columns."""

    request: Publish
    messages: Messages
    followed: Followed

    @property
    def routed(self) -> Sequence[int]:
        """Numbers of the messages that have target queues."""
        targets = self.messages.targets
        if all(targets):
            return range(len(targets))
        return condensed([index for index, queue_ids in enumerate(targets) if queue_ids])

    @property
    def unrouted(self) -> Sequence[int]:
        """Numbers of the messages without target queues: dropped, or returned."""
        targets = self.messages.targets
        return () if all(targets) else [index for index, queue_ids in enumerate(targets) if not queue_ids]


@dataclass(slots=True)
class OpenTransactions:
    """Bytes of all transactions of a gateway that are not decided, and how many there may be."""

    limit: int
    used: int = 0


@dataclass(slots=True)
class Transaction:
    """What was published and settled in it. `fault`: why it cannot be committed, if it cannot."""

    open: OpenTransactions
    publications: list[Publication] = field(default_factory=list)
    settlements: list[PendingSettlement] = field(default_factory=list)
    size: int = 0
    annotated: int = 0  # deliveries settled in it that were given annotations
    fault: BrokerError | None = None

    def add(self, publication: Publication) -> None:
        """Raises PreconditionFailed when it, or all of the gateway together, would be too large."""
        self.publications.append(publication)
        self.grow(publication.messages.size)
        if self.fault:
            raise self.fault

    def grow(self, size: int) -> None:
        """Such bytes are part of it; where that is too much it cannot be committed."""
        self.size += size
        self.open.used += size
        if self.size > _LARGEST:
            self.fault = PreconditionFailed(f"a transaction may hold {_LARGEST} bytes of messages; commit more often")
        elif self.open.used > self.open.limit:
            self.fault = PreconditionFailed("the open transactions of all clients take too much memory; try again")

    def keeps(self, change: Change, count: int) -> Change:
        """What is kept of that which is said of so many deliveries: nothing, where it cannot be committed anyway."""
        if change.annotations and not self.fault:
            self.annotated += count
            if self.annotated > _MOST_ANNOTATED:
                self.fault = PreconditionFailed(f"annotations in a transaction are for {_MOST_ANNOTATED} messages")
            else:
                self.grow(len(change.annotations))
        return UNCHANGED if self.fault else change

    def _end(self) -> None:
        self.open.used -= self.size
        self.size = 0

    def committed(self) -> None:
        """The transaction is committed."""
        self._end()
        for each in self.publications:
            each.followed.committed(len(each.messages))

    def rolled_back(self) -> None:
        """The transaction is rolled back."""
        self._end()
        for each in self.publications:
            each.followed.rolled_back()

    def in_doubt(self) -> None:
        """The outcome is unknown."""
        self._end()
        for each in self.publications:
            each.followed.in_doubt()
