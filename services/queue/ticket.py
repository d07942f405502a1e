"""Who waits for the journal: a batch is done when every part of it is safe or refused; settlements, when safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from services.rpc.queue_pb2 import Reason


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


class Ticket:
    """One batch of one link; `pending` parts of it are open.

    `turned_away` are the partitions of which the link has had something refused, to be sent again or elsewhere.
    """

    __slots__ = ("_answers", "_sequence", "pending", "turned_away")

    def __init__(self, answers: Answers, sequence: int, turned_away: set[int]) -> None:
        self._answers = answers
        self._sequence = sequence
        self.turned_away = turned_away
        self.pending = 1

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits any more: who published it may have sent it elsewhere since."""
        return self._answers.broken

    def refuse(self, first: int, count: int, queue_id: int, reason: Reason.ValueType) -> None:
        """Some of it is not taken."""
        self._answers.refuse(self._sequence, first, count, queue_id, reason)

    def overtakes(self, partition: int, *, resent: bool) -> bool:
        """Whether what is for a partition was under way when something before it was refused, and has to follow it."""
        if resent:
            self.turned_away.discard(partition)
        return partition in self.turned_away

    def part_done(self) -> None:
        """One part less; after the last one the batch is done."""
        self.pending -= 1
        if not self.pending:
            self._answers.done(self._sequence)
