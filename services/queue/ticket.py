"""Who waits for the journal: a batch is done when every part of it is safe or refused; settlements, when safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from services.common.clock import monotonic
from services.common.containment import for_each
from services.queue.known import Known, Taken
from services.rpc.queue_pb2 import NOT_OWNER, Reason

_LONGEST = 10.0  # seconds: a partition that takes longer to come is rarer than a second death meanwhile


class Answers(Protocol):
    """Where answers to batches go."""

    @property
    def broken(self) -> bool:
        """Whether nobody hears them any more."""

    def done(self, sequence: int) -> None: ...

    def refuse(self, sequence: int, first: int, count: int, queue_id: int, reason: Reason.ValueType) -> None: ...


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
        """Nobody is told that they are safe: what has settled them keeps them."""


class Ticket:
    """One batch of one link; `pending` parts of it are open.

    `turned_away` are the partitions of which the link has had something refused, to be sent again or elsewhere: what
    follows it is refused too, until the link says that it comes again.
    """

    __slots__ = ("_answers", "_given_up", "_late", "_sequence", "_taken", "pending", "turned_away")

    def __init__(self, answers: Answers, sequence: int, turned_away: set[int]) -> None:
        self._answers = answers
        self._sequence = sequence
        self._taken: list[tuple[Known, Taken]] = []
        self._given_up = False
        self._late: Late | None = None
        self.turned_away = turned_away
        self.pending = 1

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits any more: who published it may have sent it elsewhere since."""
        return self._given_up or self._answers.broken

    def give_up(self) -> None:
        """Something failed in between: its publisher is told so by somebody else."""
        self._given_up = True
        self.not_safe()
        self._end()

    def refuse(self, first: int, count: int, queue_id: int, reason: Reason.ValueType) -> None:
        """Some of it is not taken."""
        self._answers.refuse(self._sequence, first, count, queue_id, reason)

    def turn_away(self, partition: int, first: int, count: int, queue_id: int) -> None:
        """Some of it is for the partition's owner, who is another, or this process later."""
        self.turned_away.add(partition)
        self.refuse(first, count, queue_id, NOT_OWNER)

    def part_done(self) -> None:
        """One part less; after the last one the batch is done."""
        self.pending -= 1
        if not self.pending:
            self._answers.done(self._sequence)
            self._end()

    def waits(self, late: Late) -> None:
        """Some of it has to wait; `late` is told when it is done, or nobody waits for it any more."""
        self._late = late

    def _end(self) -> None:
        late, self._late = self._late, None
        if late:
            late.ended(self)

    # -------------------------------------------------------------- until the link has heard that

    def took(self, known: Known, taken: Taken) -> None:
        """A partition has taken some of it."""
        known.add(taken)
        self._taken.append((known, taken))

    def not_safe(self) -> None:
        """What was taken until now may not be there when it comes again: then it is taken again."""
        for known, taken in self._taken:
            known.not_safe(taken)

    def heard(self) -> None:
        """The link knows that the batch is done."""
        for known, taken in self._taken:
            known.heard(taken)

    def link_ended(self) -> None:
        """The link will not hear it."""
        for known, taken in self._taken:
            known.link_ended(taken)
        self._end()


class Late:
    """Batches of which some waits for a partition that is on its way here.

    Until such a batch is done, its publisher sends all of it again if this process dies. What is not on disk would be
    there again, whatever consumers have said of it: so their gateways keep what they have said until then.
    """

    def __init__(self) -> None:
        self._open: set[Ticket] = set()
        self._since = 0.0
        self._held: list[Receipt] = []

    def add(self, ticket: Ticket) -> None:
        """Some of it has to wait."""
        self._since = self._since if self._open else monotonic()
        self._open.add(ticket)
        ticket.waits(self)

    def hold(self, receipt: Receipt) -> None:
        """Settlements are not safe while there are such batches; not for ever, as gateways keep them meanwhile."""
        if self._open and monotonic() - self._since < _LONGEST:
            receipt.pending += 1
            self._held.append(receipt)
        elif self._held:
            self._let_go()

    def ended(self, ticket: Ticket) -> None:
        """It is done, or given up. With the last one all that is held is let go: take-overs take seconds."""
        self._open.discard(ticket)
        if not self._open:
            self._let_go()

    def _let_go(self) -> None:
        held, self._held = self._held, []
        for_each("telling that settlements are safe", held, Receipt.part_done)
