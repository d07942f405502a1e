"""Who waits for a batch: it is done when every part of it is safe or refused."""

from __future__ import annotations

from typing import Protocol

from services.rpc.queue_pb2 import Reason


class Answers(Protocol):
    """Where answers to batches go."""

    def done(self, sequence: int) -> None: ...

    def refuse(self, sequence: int, first: int, count: int, queue_id: int, reason: Reason.ValueType) -> None: ...


class Ticket:
    """One batch of one link; `pending` parts of it are open."""

    __slots__ = ("_answers", "_sequence", "pending")

    def __init__(self, answers: Answers, sequence: int) -> None:
        self._answers = answers
        self._sequence = sequence
        self.pending = 1

    def refuse(self, first: int, count: int, queue_id: int, reason: Reason.ValueType) -> None:
        """Some of it is not taken."""
        self._answers.refuse(self._sequence, first, count, queue_id, reason)

    def part_done(self) -> None:
        """One part less; after the last one the batch is done."""
        self.pending -= 1
        if not self.pending:
            self._answers.done(self._sequence)
