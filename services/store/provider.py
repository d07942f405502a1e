"""What the store needs of a place that keeps things: one way in (`commit`), and a way out for each kind of thing.

A provider decides nothing. Fences, live counts, transactions and time are the store's; a provider carries out one
`Changes` at a time, whole or not at all. It is a plug-in of the group `store_providers`, made from a folder.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
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
    """Entries of one batch that are gone; `left` alive after it, which tells the rows of a batch apart."""

    batch: int
    left: int
    indexes: bytes  # one or more hopline.store.Dequeue, one after the other: protobuf reads them as one


class LeaseRow(NamedTuple):
    """`member` is empty when the lease was let go; the epoch stays for the next holder to exceed."""

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
    """What the store remembers of an entry batch while running."""

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
    """An entry batch with everything that recovery needs of it."""

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
    replaced: dict[tuple[int, int], None] = field(default_factory=dict)  # partition, origin: all that was taken goes
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
    running: int = 0  # the store's running time, when it is to be kept; not worth a commit of its own
    incarnation: int = 0  # starts of the store so far, where another one than it counted has to go on

    def replace_taken(self, partition: int, origin: int) -> None:
        """What was written of these before goes, in this very group too."""
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
    """Contents, entry batches, dequeues, and what is known of messages that may be sent again."""

    async def live(self) -> list[LiveRow]:
        """Every entry batch there is, for what is kept in memory of it."""

    async def floors(self, partition: int) -> list[tuple[int, int]]:
        """(origin, uid) of `partition`, those first that are as they are for longest."""

    async def taken(self, partition: int) -> list[TakenRow]:
        """Those of `partition` that no floor is above."""

    def batches(self, partition: int) -> AsyncIterator[StoredBatch]:
        """The entry batches of `partition` by id. Holds up no commit and only some of them in memory."""

    async def sharing(self, content: int) -> Sharing | None:
        """A content with all batches on it; None when there is none."""


class Transactions(Protocol):
    """Outcomes of transactions, and how far each writer of the journal has come."""

    async def outcomes(self) -> list[OutcomeRow]:
        """Oldest first."""

    async def writers(self) -> dict[int, int]: ...

    async def refusals(self) -> list[RefusalRow]: ...


class Leases(Protocol):
    async def leases(self) -> list[LeaseRow]: ...


class Origins(Protocol):
    async def last_origin(self) -> int: ...

    async def running(self) -> int:
        """The running time that was kept last, in milliseconds."""

    async def begin_incarnation(self) -> int:
        """Counts one start of the store, durably, and gives the new count."""


class Records(Protocol):
    async def records(self) -> list[RecordRow]: ...


class Whole(Protocol):
    """All that there is, to be carried elsewhere."""

    def snapshot(self) -> AsyncGenerator[Changes, None]:
        """What there is at the first step, in pieces; committed to an empty provider, they make the same of it.

        Ages are left out: all marks are as old as the running time. Commits go on meanwhile, and one piece at a time is
        in memory. Who does not want the rest closes it. While nothing is written the pieces are the same each time.
        """

    async def given(self) -> Changes:
        """Leases, counters and records of what is in its folder, though it is not open; of former releases too.

        Nothing is written there, and nothing waited for. Raises InternalError when that cannot be used.
        """

    def files(self) -> tuple[str, ...]:
        """Names in its folder that come and go together, there or not; none: it keeps nothing in a folder."""


class Occupied(InternalError):
    """Another process writes there."""


@runtime_checkable
class Elsewhere(Protocol):
    """What a provider can do besides whose place is another program, which may go away, or be another process's."""

    async def occupied(self) -> str:
        """Who writes there, as people are told; "" when nobody does, so that `open` may become the writer.

        Called before `open`, again and again while this process stands by. Raises InternalError where it cannot ask.
        """

    async def sure(self) -> None:
        """Returns when nobody else can have taken this process for dead, or that cannot be asked since it is away.

        At once, unless the process stood still. Raises InternalError where another writes by now.
        """

    def trouble(self) -> str:
        """Why it cannot write now, and since when, as far as it knows without a commit; "" when it can."""

    def watch(self, ended: Callable[[BaseException], None]) -> None:
        """`ended` is told once when it never will write again in this process."""


class Provider(Entries, Transactions, Leases, Origins, Records, Whole, Protocol):
    """All of it together."""

    async def open(self, *, patient: bool = True) -> None:
        """Waits while there is no room for it, if `patient`. Raises InternalError when what is there cannot be used."""

    async def close(self) -> None: ...

    async def commit(self, changes: Changes) -> None:
        """Returns when `changes` are durable; raises when they could not be written, and then none of them are."""

    async def tidy(self, outcomes_before: int, marks_before: int) -> None:
        """Forgets outcomes, and writers, floors and what was taken, older than these (running time, ms).

        Gives back some space.
        """

    def room(self) -> Room | None:
        """How much there is where it writes, but for what it will take for what is written already.

        Asked for at once and often; None where that is no disk.
        """

    async def make_room(self) -> None:
        """Gives back what it can do without. Called now and then while there is little; may raise."""
