"""The journal: frames from all writers go through fences into commit groups, and are answered when on disk.

A writer is one incarnation of a journal client; its frames are numbered. The number of the last one is written in the
same commit, so that a frame that is resent after a crash of either side is recognised and counts once. Answers that
refuse something are kept too: a resent frame gets the answer that it had, even if epochs have changed since.

A frame is written as far as its fences hold. Were it left out whole and written again without what was fenced, it would
come after frames that refer to it: a dequeue among those would be lost, and what was acknowledged would come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from services.rpc.store_pb2 import JournalAck, JournalFrame
from services.store.committer import Committer, Work
from services.store.draft import LIMIT, Draft
from services.store.fencing import Epochs
from services.store.freeing import Freeing
from services.store.provider import RefusalRow
from services.store.transactions import Transactions

# Read ahead from one writer while its earlier frames are being written; beyond it the transport holds it back.
# Frames that wait for room do not count: frames behind them may free some. A writer's own windows keep those few.
READ_AHEAD = 32 << 20


def _unheard() -> None:
    return None


class Journal:
    """What all streams share."""

    def __init__(self, committer: Committer, epochs: Epochs, transactions: Transactions) -> None:
        self._committer = committer
        self._epochs = epochs
        self._transactions = transactions
        self._writers: dict[int, int] = {}
        self._refusals: dict[tuple[int, int], bytes] = {}  # writer, sequence → JournalAck

    def restore(self, writers: dict[int, int], refusals: Iterable[RefusalRow]) -> None:
        """Takes over each writer's last sequence, and the answers to frames that were not written, or not whole."""
        self._writers = writers
        self._refusals = {(row.writer, row.sequence): row.answer for row in refusals}

    def append(
        self,
        writer: int,
        frame: JournalFrame,
        answer: Callable[[JournalAck], None],
        size: int | None = None,
        aside: Callable[[], None] = _unheard,
    ) -> None:
        """Queues a frame of so many bytes; `answer` is called when it is on disk, or refused for good, in the order of
        the writer's frames except for those of transactions. `aside` is called when it has to wait for room.
        """
        # Staged frames are not written before their transaction is decided.
        brings = frame.contents and not frame.transaction
        weight = 0 if not brings else frame.ByteSize() if size is None else size
        append = Append(self, writer, frame, answer, aside)
        self._committer.submit(append, weight, writer, append.is_moot, append.ahead, append.turn)

    def is_moot(self, writer: int, frame: JournalFrame) -> bool:
        """Whether nothing of a frame would be written: it was before, or all its fences are out of date."""
        return self._writers.get(writer, 0) >= frame.sequence or (
            bool(frame.fences) and len(self._epochs.refused(frame.fences)) == len(frame.fences)
        )

    def accept(self, writer: int, frame: JournalFrame, draft: Draft) -> JournalAck:
        """Decides about a frame, and adds what can be written of it to the group."""
        if frame.transaction:
            return self._stage(writer, frame, draft)
        sequence = frame.sequence
        if self._writers.get(writer, 0) >= sequence:
            return self._answer_again(writer, frame)
        fenced = self._epochs.refused(frame.fences)
        ack = JournalAck(sequence=sequence, fenced=fenced, refused=draft.fault(frame))
        if not ack.refused:
            draft.add(frame, fenced)
        if ack.refused or fenced:
            self._note(writer, ack, draft)
        if sequence < LIMIT:
            self._writers[writer] = draft.changes.writers[writer] = sequence
        return ack

    def free(self, writer: int, part: JournalFrame, draft: Draft) -> None:
        """Adds the part of a frame that goes ahead of it to the group."""
        if not self.is_moot(writer, part) and not draft.fault(part):
            draft.add(part, self._epochs.refused(part.fences))

    def _stage(self, writer: int, frame: JournalFrame, draft: Draft) -> JournalAck:
        """Stages a frame. It is not numbered on disk: after a crash staged frames are gone, and must be taken again.

        A frame that decides is known by its transaction: sent again, it is answered with what was decided.
        """
        if frame.decides and (known := self._transactions.outcome(frame.transaction)):
            return JournalAck(sequence=frame.sequence, committed=known.committed)
        fenced = self._epochs.refused(frame.fences)
        ack = JournalAck(sequence=frame.sequence, fenced=fenced, refused="" if fenced else draft.fault(frame))
        if not fenced and not ack.refused:
            self._transactions.stage((writer, frame.sequence), frame, draft.changes.at)
            if frame.decides and (not frame.contents or draft.takes(frame.ByteSize())):
                ack.committed = self._transactions.decide(frame.transaction, 1, draft).committed
        return ack

    def _answer_again(self, writer: int, frame: JournalFrame) -> JournalAck:
        answer = self._refusals.get((writer, frame.sequence))
        if answer is None:
            return JournalAck(sequence=frame.sequence)
        if answer:
            return JournalAck.FromString(answer)
        # Kept by a former release, which refused frames whole, and kept no answers.
        fenced = self._epochs.refused(frame.fences)
        return JournalAck(sequence=frame.sequence, fenced=fenced, refused="" if fenced else "it was refused before")

    def _note(self, writer: int, ack: JournalAck, draft: Draft) -> None:
        if ack.sequence < LIMIT:
            answer = self._refusals[writer, ack.sequence] = ack.SerializeToString()
            draft.changes.refusals.append(RefusalRow(writer, ack.sequence, answer))


class Append:
    """One frame on its way through the committer."""

    __slots__ = ("_ack", "_answer", "_aside", "_frame", "_freeing", "_journal", "_writer")

    def __init__(
        self,
        journal: Journal,
        writer: int,
        frame: JournalFrame,
        answer: Callable[[JournalAck], None],
        aside: Callable[[], None],
    ) -> None:
        self._journal = journal
        self._writer = writer
        self._frame = frame
        self._answer = answer
        self._aside = aside
        self._freeing: Freeing | None = None  # once it waits
        self._ack: JournalAck

    def is_moot(self) -> bool:
        """As Journal says."""
        return self._journal.is_moot(self._writer, self._frame)

    def ahead(self, held: set[int]) -> Work | None:
        """As Committer.submit says. Staging writes nothing: it can go ahead if it refers to nothing `held`."""
        frame = self._frame
        if self._freeing is None:
            self._freeing = Freeing(frame)
            self._aside()
        if frame.transaction:
            return None if any(dequeue.batch in held for dequeue in frame.dequeues) else self
        held.update(batch.id for batch in frame.entries)
        part = self._freeing.ahead(held)
        return part and Ahead(self._journal, self._writer, part)

    def turn(self) -> Work | None:
        """As Committer.submit says."""
        spent = self._freeing is not None and self._freeing.spent
        return Turn(self._journal, self._writer, self._frame, self._answer) if spent else None

    def prepare(self, draft: Draft) -> None:
        self._ack = self._journal.accept(self._writer, self._frame, draft)

    def written(self) -> None:
        self._answer(self._ack)


class Ahead:
    """The part of a frame that does not wait with it."""

    def __init__(self, journal: Journal, writer: int, part: JournalFrame) -> None:
        self._journal = journal
        self._writer = writer
        self._part = part

    def prepare(self, draft: Draft) -> None:
        self._journal.free(self._writer, self._part, draft)

    def written(self) -> None:
        """Does nothing: its frame is answered in its turn."""


class Turn:
    """A frame of which only number and answer are left, perhaps among thousands: as bytes, which take little memory."""

    __slots__ = ("_ack", "_answer", "_frame", "_journal", "_writer")

    def __init__(
        self, journal: Journal, writer: int, frame: JournalFrame, answer: Callable[[JournalAck], None]
    ) -> None:
        self._journal = journal
        self._writer = writer
        self._frame = frame.SerializeToString()
        self._answer = answer
        self._ack: JournalAck

    def prepare(self, draft: Draft) -> None:
        self._ack = self._journal.accept(self._writer, JournalFrame.FromString(self._frame), draft)

    def written(self) -> None:
        self._answer(self._ack)


class Stream:
    """One writer's stream: reads ahead only so far, and tells each answer as soon as there is one."""

    def __init__(
        self, journal: Journal, writer: int, tell: Callable[[JournalAck], None], hold: Callable[[bool], None]
    ) -> None:
        """`hold` is called with whether the writer is not to send any more for now."""
        self._journal = journal
        self._writer = writer
        self._tell = tell
        self._hold = hold
        self._held = False
        self._open = 0  # frames without an answer …
        self._bytes = 0  # … and the bytes of those that do not wait for room
        self._answered = asyncio.Event()

    def take(self, frame: JournalFrame) -> None:
        """Appends a frame that has come."""
        size = frame.ByteSize()
        self._open += 1
        self._bytes += size
        counted = _Counted(self, size)
        self._journal.append(self._writer, frame, counted.answer, size, counted.release)
        if self._bytes > READ_AHEAD and not self._held:
            self._held = True
            self._hold(True)

    async def answered(self) -> None:
        """Returns when all frames that have come are answered."""
        while self._open:
            self._answered.clear()
            await self._answered.wait()

    def answer(self, ack: JournalAck) -> None:
        """A frame is on disk, or refused for good."""
        self._open -= 1
        self._tell(ack)
        if not self._open:
            self._answered.set()

    def release(self, size: int) -> None:
        """So many bytes do not count as read ahead any more."""
        self._bytes -= size
        if self._held and self._bytes <= READ_AHEAD:
            self._held = False
            self._hold(False)


class _Counted:
    """A frame's bytes, as long as they count as read ahead."""

    __slots__ = ("_size", "_stream")

    def __init__(self, stream: Stream, size: int) -> None:
        self._stream = stream
        self._size = size

    def answer(self, ack: JournalAck) -> None:
        self.release()
        self._stream.answer(ack)

    def release(self) -> None:
        size, self._size = self._size, 0
        self._stream.release(size)
