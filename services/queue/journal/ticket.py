"""What waits for the journal: a batch is done when every part of it is safe or refused; settlements, when safe."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from services.common.clock import monotonic
from services.common.containment import for_each
from services.common.topology.slots import SlotId
from services.queue.journal.known import Known, Taken
from services.queue.links.peer_terms import PeerTerms
from services.rpc.queue_pb2 import NOT_OWNER, Reason

_LONGEST = 10.0  # seconds: that a publisher hears nothing for longer is rarer than that this process dies meanwhile
_EXPECT_SECONDS = 1.0  # for so long one `_Expected` stands for all messages that are settled before they are resent
_RETURN_SECONDS = 2.0  # in which a live gateway opens another stream, and most of what it resends is answered


class Answers(Protocol):
    """Takes the answers to batches."""

    @property
    def broken(self) -> bool:
        """Whether answers do not reach the publisher any more."""

    def done(self, sequence: int) -> None: ...

    def refuse(self, sequence: int, indexes: Sequence[int], queue_id: SlotId, reason: Reason.ValueType) -> None: ...


class Taker(Protocol):
    """A partition, with what it knows of messages that may be resent."""

    known: Known

    def not_safe(self, taken: Taken) -> None:
        """What it took may be lost."""


class Part(Protocol):
    """Waits for the journal."""

    pending: int

    def part_done(self) -> None: ...

    def part_failed(self) -> None:
        """It cannot be written."""


class Receipt:
    """For the settlements of a frame; `done` is called when all `pending` parts of them are safe."""

    __slots__ = ("_done", "pending")

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self.pending = 1

    def part_done(self) -> None:
        """One part less."""
        self.pending -= 1
        if not self.pending:
            self._done()

    def part_failed(self) -> None:
        """The gateway is not told that they are safe, so it keeps them."""


class Written:
    """To be awaited: whether everything that its parts wait for is on disk."""

    __slots__ = ("_written", "pending")

    def __init__(self) -> None:
        self._written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.pending = 1

    def __await__(self) -> Generator[None, None, bool]:
        return self._written.__await__()

    def part_done(self) -> None:
        """One part less."""
        self.pending -= 1
        if not self.pending and not self._written.done():
            self._written.set_result(True)

    def part_failed(self) -> None:
        """It cannot be written."""
        if not self._written.done():
            self._written.set_result(False)


class Ticket:
    """One batch of one link; `pending` parts of it are open.

    `turned_away` are the partitions for which a batch of the link was refused, to be resent here or elsewhere: batches
    behind it are refused too, until the link says that it resends. `terms` are those for which it publishes.
    """

    __slots__ = (
        "_answers", "_given_up", "_sequence", "_taken", "_unheard", "number", "pending", "terms", "turned_away",
        "until",
    )  # fmt: skip

    def __init__(
        self, answers: Answers, sequence: int, turned_away: set[int], unheard: Unheard, terms: PeerTerms
    ) -> None:
        self._answers = answers
        self._sequence = sequence
        self._taken: list[tuple[Taker, Taken]] = []
        self._given_up = False
        self._unheard = unheard
        self.turned_away = turned_away
        self.terms = terms
        self.pending = 1
        self.number = 0  # of all batches of the process …
        self.until = 0.0  # … and until when settlements wait for it (monotonic seconds)

    @property
    def abandoned(self) -> bool:
        """Whether nothing waits for its answer any more: the publisher may have resent the batch elsewhere."""
        return self._given_up or self._answers.broken

    def give_up(self) -> None:
        """Taking the batch in failed: the caller tells its publisher so."""
        self._given_up = True
        self.not_safe()
        self._unheard.over(self)

    def refuse(self, indexes: Sequence[int], queue_id: SlotId, reason: Reason.ValueType) -> None:
        """A queue does not take the messages at these indexes."""
        self._answers.refuse(self._sequence, indexes, queue_id, reason)

    def turn_away(self, partition: int, indexes: Sequence[int], queue_id: SlotId) -> None:
        """Refuses messages for a partition that another process owns, or this one only later."""
        self.turned_away.add(partition)
        self.refuse(indexes, queue_id, NOT_OWNER)

    def part_done(self) -> None:
        """One part less; after the last one the batch is done."""
        self.pending -= 1
        if not self.pending:
            self._answers.done(self._sequence)

    # -------------------------------------------------------------- until the link has heard that

    def took(self, taker: Taker, taken: Taken) -> None:
        """A partition has taken some of it."""
        taker.known.add(taken)
        self._taken.append((taker, taken))

    def not_safe(self) -> None:
        """What was taken until now may be lost: it is taken again if it is resent."""
        for taker, taken in self._taken:
            taker.not_safe(taken)

    def heard(self) -> None:
        """The link knows that the batch is done."""
        for taker, taken in self._taken:
            taker.known.heard(taken)
        self._unheard.over(self)

    def link_ended(self) -> None:
        """The link is gone, and does not hear the answer."""
        for taker, taken in self._taken:
            taker.known.link_ended(taken)
        self._unheard.link_ended(self)


class _Expected:
    """Stands for batches that have not been resent yet."""

    __slots__ = ("number", "until")

    def __init__(self) -> None:
        self.number = 0
        self.until = 0.0


class Unheard:
    """Batches whose publishers have not heard yet that they are done.

    Until then the publishers resend all of them if this process dies. A transient message would be there again, though
    a consumer has settled it: so gateways keep the settlements until the batches are heard of.
    """

    def __init__(self) -> None:
        self._open: dict[Ticket | _Expected, None] = {}  # in the order in which they came
        self._count = 0  # of all that came
        self._expect_again = 0.0  # when expectations are prolonged (monotonic seconds)
        self._held: deque[tuple[int, Receipt]] = deque()  # the count of batches before it, and the receipt

    def expect(self) -> None:
        """A settled message will be resent, by a publisher that does not know the queue's present owner yet."""
        if monotonic() >= self._expect_again:
            self._expect_again = monotonic() + _EXPECT_SECONDS
            self.add(_Expected())

    def add(self, ticket: Ticket | _Expected) -> None:
        """A batch has come."""
        now = monotonic()
        self._oldest(now)  # drops overdue batches, also when nothing is settled
        self._count += 1
        ticket.number, ticket.until = self._count, now + _LONGEST
        self._open[ticket] = None

    def link_ended(self, ticket: Ticket) -> None:
        """Its publisher resends it on another stream, if one is opened soon."""
        ticket.until = min(ticket.until, monotonic() + _RETURN_SECONDS)

    def over(self, ticket: Ticket) -> None:
        """Its publisher does not resend it any more."""
        self._open.pop(ticket, None)
        if self._held:
            self._let_go()

    def hold(self, receipt: Receipt) -> None:
        """Holds a receipt until all batches so far are heard of; not for ever, as gateways keep the settlements."""
        self._let_go()
        if self._open:
            receipt.pending += 1
            self._held.append((self._count, receipt))

    def _let_go(self) -> None:
        oldest, held = self._oldest(monotonic()), self._held
        safe = []
        while held and held[0][0] < oldest:
            safe.append(held.popleft()[1])
        for_each("telling that settlements are safe", safe, Receipt.part_done)

    def _oldest(self, now: float) -> int:
        while (ticket := next(iter(self._open), None)) is not None:
            if ticket.until > now:
                return ticket.number
            del self._open[ticket]
        return self._count + 1
