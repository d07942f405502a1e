"""The part of a frame waiting for room that is written ahead of it: the part that frees room.

Dequeues free room, so they must not wait behind messages of the same writer. A dequeue goes ahead when its entry is on
disk: its entry batch is in no frame that waits. So do the mark of its delivery, and what is taken of its batch
(`taken`), which is never written without a dequeue nor the other way about. The frame is numbered, answered, and
written whole in its turn: what went ahead is there by then, and changes nothing.

Frames whose dequeues replace entries by others that they bring do not say `apart`, and wait whole.
"""

from __future__ import annotations

from collections.abc import Container

from services.rpc.store_pb2 import JournalFrame


class Freeing:
    """What has not gone ahead yet of one frame."""

    def __init__(self, frame: JournalFrame) -> None:
        self._frame = frame
        apart = frame.apart and len(frame.taken_of) == len(frame.taken)
        spoken_of = {dequeue.batch for dequeue in frame.dequeues} | {delivered.batch for delivered in frame.delivered}
        self._left = spoken_of if apart else set()

    @property
    def spent(self) -> bool:
        """Whether nothing of it can go ahead any more, and nothing in it keeps back the frames behind it."""
        frame = self._frame
        return not (self._left or frame.entries or frame.transaction)

    def ahead(self, held: Container[int]) -> JournalFrame | None:
        """The part that can go now: changes to batches that are not `held`, each once."""
        ready = {batch for batch in self._left if batch not in held}
        self._left -= ready
        return _part(self._frame, ready) if ready else None


def _part(frame: JournalFrame, batches: Container[int]) -> JournalFrame:
    return JournalFrame(
        sequence=frame.sequence,
        fences=frame.fences,
        dequeues=[dequeue for dequeue in frame.dequeues if dequeue.batch in batches],
        delivered=[delivered for delivered in frame.delivered if delivered.batch in batches],
        taken=[taken for taken, batch in zip(frame.taken, frame.taken_of, strict=True) if batch in batches],
    )
