"""What the store needs of a storage provider: one way to write (`commit`), and a way to read each kind of thing.

A provider decides nothing. Fences, live counts, transactions and time are the store's; a provider carries out one
`Changes` at a time, whole or not at all. It is a plug-in of the group `store_providers`, made from a folder.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from services.common.disk import Room
from services.common.errors import InternalError


class EntryRow(NamedTuple):
    """A batch of entries of one partition, as it is kept."""

    id: int
    partition: int
    content: int
    total: int
    entries: bytes  # hopline.store.EntryColumns


class DequeueRow(NamedTuple):
    """Dequeued entries of one batch; `left`, the number alive after it, tells the rows of a batch apart."""

    batch: int
    left: int
    indexes: bytes  # one or more hopline.store.Dequeue, one after the other: protobuf reads them as one


class LeaseRow(NamedTuple):
    """`member` is empty when the lease was released; the epoch stays, and the next holder's is higher."""

    name: str
    epoch: int
    member: str = ""
    role: str = ""
    address: str = ""


class RecordRow(NamedTuple):
    kind: str
    key: str
    value: bytes
    version: int


class LiveRow(NamedTuple):
    """What the store keeps in memory of an entry batch."""

    id: int
    partition: int
    content: int
    total: int
    dequeues: bytes  # of all its DequeueRows, one after the other
    size: int  # bytes of the content's columns
    whole: bool  # no body of the content was blanked


class TakenRow(NamedTuple):
    """hopline.store.Taken, as it is kept."""

    id: int
    partition: int
    origin: int
    upto: int
    messages: bytes


class RefusalRow(NamedTuple):
    """A frame that was not written, or not all of it."""

    writer: int
    sequence: int
    answer: bytes  # hopline.store.JournalAck; empty where a former release has refused it


class OutcomeRow(NamedTuple):
    transaction: int
    committed: bool
    at: int  # of the store's running time, milliseconds


class StoredBatch(NamedTuple):
    """An entry batch with everything that recovery needs."""

    entry: EntryRow
    columns: bytes
    dequeues: list[bytes]
    delivered_upto: int


class Sharing(NamedTuple):
    """A content and the batches that live on it."""

    columns: bytes
    batches: list[tuple[bytes, list[bytes]]]  # entries, dequeues


@dataclass(slots=True)
class Changes:
    """One commit: removals first, then the rest. Carrying it out twice is the same as once."""

    at: int = 0  # of the store's running time, milliseconds
    dead_batches: list[int] = field(default_factory=list)  # with their dequeues
    dead_contents: list[int] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)  # whole; replaces what is there
    blanked: dict[int, bytes] = field(default_factory=dict)  # replaces a content, bodies of dead entries left out
    entries: dict[int, EntryRow] = field(default_factory=dict)
    dequeues: list[DequeueRow] = field(default_factory=list)
    delivered: dict[int, int] = field(default_factory=dict)  # batch -> upto; grows only
    replaced: dict[tuple[int, int], None] = field(default_factory=dict)  # partition, origin: its taken rows go
    taken: list[TakenRow] = field(default_factory=list)  # by id; before floors, which remove some
    floors: dict[tuple[int, int], int] = field(
        default_factory=dict
    )  # partition, origin -> uid; what is below is removed
    writers: dict[int, int] = field(default_factory=dict)  # journal writer -> sequence of its last frame
    refusals: list[RefusalRow] = field(default_factory=list)
    outcomes: dict[int, bool] = field(default_factory=dict)  # transaction -> committed
    leases: dict[str, LeaseRow] = field(default_factory=dict)
    records: dict[tuple[str, str], RecordRow | None] = field(default_factory=dict)  # None: deleted
    origin: int = 0  # the last one given, when it changed
    running: int = 0  # the store's running time, when it is to be written; not worth a commit of its own
    incarnation: int = 0  # starts of the store so far, for another store that has to go on counting (a snapshot)

    def replace_taken(self, partition: int, origin: int) -> None:
        """Removes the taken rows of these that were written before, also earlier in this group."""
        self.replaced[partition, origin] = None
        self.taken = [row for row in self.taken if (row.partition, row.origin) != (partition, origin)]

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        journal = self.contents or self.entries or self.dequeues or self.dead_batches or self.dead_contents
        known = self.replaced or self.taken or self.floors or self.writers or self.refusals or self.outcomes
        marks = self.blanked or self.delivered
        counters = self.origin or self.incarnation
        return bool(journal or marks or known or self.leases or self.records or counters)


class Entries(Protocol):
    """Contents, entry batches, dequeues, and what is known of messages that may be resent."""

    async def live(self) -> list[LiveRow]:
        """Every entry batch, as the store keeps it in memory."""

    async def floors(self, partition: int) -> list[tuple[int, int]]:
        """(origin, uid) of `partition`, those first that have been unchanged for longest."""

    async def taken(self, partition: int) -> list[TakenRow]:
        """The rows of `partition` that no floor is above."""

    async def numbers(self, partitions: Sequence[int]) -> dict[int, list[int]]:
        """The ids of the entry batches of each of `partitions`, ascending."""

    def batches(self, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        """The entry batches with these ids, which ascend, but for those that are gone by now, or whose content is.

        Holds up no commit, and has only some of them in memory; those in a row on one content have the same columns.
        """

    async def sharing(self, content: int) -> Sharing | None:
        """A content with all batches on it; None when there is none."""


class Transactions(Protocol):
    """Outcomes of transactions, and how far each writer of the journal has come."""

    async def outcomes(self) -> list[OutcomeRow]:
        """The outcomes, oldest first."""

    async def writers(self) -> dict[int, int]: ...

    async def refusals(self) -> list[RefusalRow]: ...


class Leases(Protocol):
    async def leases(self) -> list[LeaseRow]: ...


class Origins(Protocol):
    async def last_origin(self) -> int: ...

    async def running(self) -> int:
        """The running time that was written last, in milliseconds."""

    async def begin_incarnation(self) -> int:
        """Counts one start of the store, durably, and gives the new count."""


class Records(Protocol):
    async def records(self) -> list[RecordRow]: ...


class Whole(Protocol):
    """All data, to be carried elsewhere."""

    def snapshot(self) -> AsyncGenerator[Changes, None]:
        """All data at the moment of the first step, in pieces; committed to an empty provider they give the same data.

        The first piece is empty, and comes at once: the moment is fixed by then, and nothing of the data is read yet.
        Ages are left out: all marks are as old as the running time. Commits go on meanwhile, and one piece at a time is
        in memory. A caller that does not want the rest closes it. While nothing is written the pieces stay the same.
        """

    async def given(self) -> Changes:
        """Leases, counters and records in its folder, read without `open`; data of former releases too.

        It writes nothing, and waits for nothing. Raises InternalError when the data cannot be used.
        """

    def files(self) -> tuple[str, ...]:
        """Names of its files, which belong together, whether they exist or not; none: it keeps nothing in a folder."""


class Occupied(InternalError):
    """Another process writes to the provider's database or servers."""


class Unreachable(InternalError):
    """Nobody answers where the provider's database or servers should be: they may be starting."""


@runtime_checkable
class Elsewhere(Protocol):
    """What a provider over another program (PostgreSQL, NATS) can do besides: it may be away, or another may write."""

    async def occupied(self) -> str:
        """The process that writes there, as shown to people; "" when none does, so that `open` may become the writer.

        Called before `open`, again and again while this process stands by. Raises InternalError where it cannot ask;
        Unreachable where that may pass by itself.
        """

    async def sure(self) -> None:
        """Returns when no other process can have taken over from this one, or when the program asked is away.

        At once, unless this process stood still. Raises InternalError where another process writes by now.
        """

    def trouble(self) -> str:
        """Why it cannot write now, and since when, as far as it knows without a commit; "" when it can."""

    def watch(self, ended: Callable[[BaseException], None]) -> None:
        """`ended` is called once when the provider can never write again in this process."""


@runtime_checkable
class Parted(Protocol):
    """What a provider does besides that keeps records in another place: either goes on while the other is away.

    Changes of records alone, and changes without any, may be committed side by side.
    """

    def trouble_with_records(self) -> str:
        """As `Elsewhere.trouble`, of that place."""


class Provider(Entries, Transactions, Leases, Origins, Records, Whole, Protocol):
    """All of it together."""

    async def open(self, *, patient: bool = True) -> None:
        """Waits while there is no room for it, if `patient`. Raises InternalError when the data cannot be used."""

    async def close(self) -> None: ...

    async def commit(self, changes: Changes) -> None:
        """Returns when `changes` are durable; raises when they could not be written, and then none of them are."""

    async def tidy(self, outcomes_before: int, marks_before: int) -> None:
        """Forgets outcomes, and writers, floors and taken rows, that are older than these (running time, ms).

        Gives back some space.
        """

    def room(self) -> Room | None:
        """The room where it writes, without the room that it will still take for what is written already.

        Called often, so it answers at once; None where it writes to no disk.
        """

    async def make_room(self) -> None:
        """Gives back the space that it can do without. Called now and then while room is short; may raise."""
