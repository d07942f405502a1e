"""What the shell asks of a queue, whatever its type: plug-ins of group `queue_types`.

A queue is a pure machine: commands and the time (Unix, ms) go in; deliveries go into the columns of the consumers'
links, everything else that has to happen into the QueueContext that it was made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from services.queue.machine.arrival import Arrival
from services.queue.machine.consumers import Consumer, Consumers, Link
from services.queue.machine.context import QueueContext
from services.queue.machine.entry import Entry, Holder, Undecided
from services.queue.machine.message import Holding
from services.queue.machine.options import QueueOptions
from services.queue.machine.overflow import OverflowPolicy
from services.queue.machine.record import QueueRecord
from services.queue.machine.use import Use
from services.rpc.queue_pb2 import Outcome, Reason

Refused = tuple[int, int, "Reason.ValueType"]  # index of the first message within the run, count, why

AT_ONCE: Final = 10_000  # messages that one turn drops or puts back: more would keep all else waiting, leases too


class Queue(Protocol):
    """One queue of a partition that this process owns."""

    options: QueueOptions
    consumers: Consumers
    record: QueueRecord
    holding: Holding
    use: Use

    @property
    def unsettled(self) -> Mapping[int, Entry]:
        """By uid, what was handed out and of which nobody has said yet what became of it."""

    @property
    def ready_count(self) -> int:
        """Messages that wait for a consumer."""

    # -------------------------------------------------------------- messages

    def publish(self, arrival: Arrival, now: int, *, reserved: bool = False) -> list[Refused]:
        """Takes a run in, delivers what can be; `reserved`: room was kept for it by `reserve`."""

    def recover(self, entries: list[Entry]) -> None:
        """Puts back what was on disk, positions ascending, before there are consumers; may be called in parts.

        Acquired ones are somebody's already, until they are settled, claimed or released.
        """

    def entries(self) -> Iterator[Entry]:
        """What is ready and what is unsettled; to be used up before anything changes."""

    def settle(self, outcome: Outcome.ValueType, uids: Sequence[int], now: int) -> None:
        """What became of deliveries; unknown uids are ignored."""

    def get(self, link: Link, now: int, *, settled: bool) -> Entry | None:
        """Hands out one entry without a consumer; nothing while it `lags`."""

    def purge(self, most: int = AT_ONCE) -> int:
        """Drops what is ready, from the front, `most` at most; gives the number."""

    def discard(self, entries: list[Entry], reason: str, now: int) -> None:
        """Dead-letters entries that are out of the list already, or drops them."""

    # -------------------------------------------------------------- consumers

    def attach(self, consumer: Consumer, held: Sequence[int], now: int, *, again: bool) -> Reason.ValueType:
        """NONE, or why not. Nothing is delivered before the next `dispatch`."""

    def claim(self, held: Sequence[int], link: Link, now: int) -> None:
        """`link` holds these from before, and no consumer stands for them."""

    def not_others(self, uids: Iterable[int], holder: Holder) -> list[int]:
        """Leaves out what another gateway has been given since `holder`'s had it: what it says came too late."""

    def detach(self, consumer: Consumer, now: int) -> bool:
        """Ends a consumer, what it holds stays unsettled; True when the queue is to be deleted with its last one."""

    def had_consumers(self, now: int) -> None:
        """A former owner's: with auto-delete it goes unless one of them, or another, comes within half a minute."""

    def credit(self, consumer: Consumer, messages: int, size: int, now: int) -> None:
        """Adds credit and delivers."""

    def dispatch(self, now: int) -> None:
        """Delivers what can be; nothing while it `lags`."""

    def lags(self, now: int) -> bool:
        """Whether more has to go, or to come back, than does in one turn: what is behind it waits for that."""

    def release_held_by(self, holder: object, now: int) -> list[int]:
        """Gives everything that `holder` has unsettled back to its place, as redelivered.

        More than goes in one turn is given to the caller, for `release`: nothing is delivered before the last of it.
        """

    def release(self, uids: Sequence[int], holder: object, now: int, *, last: bool) -> None:
        """Gives back what `holder` has of these yet; `last`: there is no more."""

    # -------------------------------------------------------------- transactions

    def reserve(self, count: int, size: int) -> bool:
        """Keeps room for messages of a transaction; False when they would overflow."""

    def place(self, count: int) -> int:
        """Keeps a place for messages of a transaction, the next `count` positions: where they will be in the queue."""

    def unreserve(self, count: int, size: int) -> None:
        """Gives up what `reserve` kept."""

    def hold(self, uids: Iterable[int], holder: Undecided) -> tuple[list[Entry], list[int]]:
        """Unsettled entries that a transaction settles, and uids of claimed ones that are to come: `holder`'s now."""

    def settle_held(self, outcome: Outcome.ValueType, entries: list[Entry], now: int, *, staged: bool) -> None:
        """The transaction is complete; `staged`: the journal has their dequeue already."""

    def settle_coming(self, outcome: Outcome.ValueType, uids: Sequence[int], holder: Undecided, now: int) -> None:
        """The same for uids that were to come when `hold` was called, whether they have come since or not."""

    def let_go(self, uids: Sequence[int], holder: Undecided) -> list[Entry]:
        """The transaction is off, for such uids: gives the entries that have come since, for `unhold`."""

    def unhold(self, entries: list[Entry], holder: object, now: int) -> None:
        """The transaction is off: they are `holder`'s again, or released when there is none."""

    # -------------------------------------------------------------- life

    def expire(self, now: int) -> None:
        """The clock's: discards messages at the front that are past their time, as many as go in one turn."""

    def deadline(self) -> int:
        """When `expire` has something to do next, or the queue is to be deleted, or 0."""

    def end(self, *, durable: bool) -> int:
        """Gives its memory back (`durable`: dequeues in the journal too); gives how many messages were ready."""


class QueueType(Protocol):
    """What an entry point of the group names."""

    def __call__(self, options: QueueOptions, context: QueueContext, policy: OverflowPolicy, now: int) -> Queue: ...
