"""The journal: frames from all writers go through fences into commit groups, and are answered when on disk.

A writer is one incarnation of a journal client; its frames are numbered. The number of the last one is written in the
same commit, so that a frame that is sent again after a crash of either side is recognised and counts once. Answers that
refuse something are on record too: what is sent again gets the answer that it had, whatever the epochs are by now.

A frame is written as far as its fences hold. Were it left out whole and written again without what was fenced, it would
come after frames that refer to it: a dequeue among those would be lost, and what was acknowledged would come back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable

from services.rpc.store_pb2 import JournalAck, JournalFrame
from services.store.committer import Committer
from services.store.draft import LIMIT, Draft
from services.store.fencing import Epochs
from services.store.provider import RefusalRow
from services.store.transactions import Transactions

# Read ahead from one writer while its earlier frames are being written; beyond it the transport holds it back.
READ_AHEAD = 32 << 20


class Journal:
    """What all streams share."""

    def __init__(self, committer: Committer, epochs: Epochs, transactions: Transactions) -> None:
        self._committer = committer
        self._epochs = epochs
        self._transactions = transactions
        self._writers: dict[int, int] = {}
        self._refusals: dict[tuple[int, int], bytes] = {}  # writer, sequence → JournalAck

    def restore(self, writers: dict[int, int], refusals: Iterable[RefusalRow]) -> None:
        """How far each writer had come, and which of its frames were not written, or not whole."""
        self._writers = writers
        self._refusals = {(row.writer, row.sequence): row.answer for row in refusals}

    def append(
        self, writer: int, frame: JournalFrame, answer: Callable[[JournalAck], None], size: int | None = None
    ) -> None:
        """Queues a frame of so many bytes; `answer` is called when its fate is durable."""
        # Of what is staged nothing is written before it is decided.
        brings = frame.contents and not frame.transaction
        weight = 0 if not brings else frame.ByteSize() if size is None else size
        append = Append(self, writer, frame, answer)
        self._committer.submit(append, weight, writer, append.is_moot)

    def is_moot(self, writer: int, frame: JournalFrame) -> bool:
        """Whether nothing of a frame would be written: it was before, or all that it is for is somebody else's."""
        return self._writers.get(writer, 0) >= frame.sequence or (
            bool(frame.fences) and len(self._epochs.refused(frame.fences)) == len(frame.fences)
        )

    def accept(self, writer: int, frame: JournalFrame, draft: Draft) -> JournalAck:
        """Decides about a frame, and puts what can be written of it into the group."""
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

    def _stage(self, writer: int, frame: JournalFrame, draft: Draft) -> JournalAck:
        """Not numbered on disk: what was staged is gone after a crash, and must be taken again."""
        fenced = self._epochs.refused(frame.fences)
        ack = JournalAck(sequence=frame.sequence, fenced=fenced, refused="" if fenced else draft.fault(frame))
        if not fenced and not ack.refused:
            self._transactions.stage((writer, frame.sequence), frame, draft.changes.at)
        return ack

    def _answer_again(self, writer: int, frame: JournalFrame) -> JournalAck:
        answer = self._refusals.get((writer, frame.sequence))
        if answer is None:
            return JournalAck(sequence=frame.sequence)
        if answer:
            return JournalAck.FromString(answer)
        # Of a former release, which refused frames whole, and noted that alone.
        fenced = self._epochs.refused(frame.fences)
        return JournalAck(sequence=frame.sequence, fenced=fenced, refused="" if fenced else "it was refused before")

    def _note(self, writer: int, ack: JournalAck, draft: Draft) -> None:
        if ack.sequence < LIMIT:
            answer = self._refusals[writer, ack.sequence] = ack.SerializeToString()
            draft.changes.refusals.append(RefusalRow(writer, ack.sequence, answer))


class Append:
    """One frame on its way through the committer."""

    __slots__ = ("_ack", "_answer", "_frame", "_journal", "_writer")

    def __init__(
        self, journal: Journal, writer: int, frame: JournalFrame, answer: Callable[[JournalAck], None]
    ) -> None:
        self._journal = journal
        self._writer = writer
        self._frame = frame
        self._answer = answer
        self._ack: JournalAck

    def is_moot(self) -> bool:
        """As Journal says."""
        return self._journal.is_moot(self._writer, self._frame)

    def prepare(self, draft: Draft) -> None:
        self._ack = self._journal.accept(self._writer, self._frame, draft)

    def written(self) -> None:
        self._answer(self._ack)


class Stream:
    """One writer's connection: reads ahead only so far, and gives acknowledgements as they come."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._acks: deque[JournalAck] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._ended = False

    async def read(self, writer: int, frames: AsyncIterator[JournalFrame]) -> None:
        """Appends what comes until the writer ends."""
        async for frame in frames:
            size = frame.ByteSize()
            self._sizes.append(size)
            self._bytes += size
            self._journal.append(writer, frame, self._answer, size)
            if self._bytes > READ_AHEAD:
                self._room.clear()
                await self._room.wait()
        self._ended = True
        self._changed.set()

    async def acks(self) -> AsyncIterator[JournalAck]:
        """Answers in the order of the frames, until the last frame of an ended writer is answered."""
        while True:
            while self._acks:
                yield self._acks.popleft()
            if self._ended and not self._sizes:
                return
            await self._changed.wait()
            self._changed.clear()

    def _answer(self, ack: JournalAck) -> None:
        self._bytes -= self._sizes.popleft()
        self._acks.append(ack)
        self._changed.set()
        if self._bytes <= READ_AHEAD:
            self._room.set()
