"""A publish batch with traced messages: they are made known before it is taken in, and hear what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from services.common.telemetry.context import SpanContext
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.host import Host
    from services.queue.journal.content import Source
    from services.queue.journal.ticket import Answers
    from services.queue.observe.journeys import Copy, Journeys

_REASONS: dict[int, str] = {number: name.lower() for name, number in pb.Reason.items()}
_ELSEWHERE = frozenset({pb.NOT_OWNER, pb.UNKNOWN_QUEUE, pb.UNAVAILABLE})


class TracedBatch:
    """Knows the copies of a batch as (index, uid, queue id)."""

    def __init__(self, host: Host, source: Source) -> None:
        self._journeys: Journeys = host.journeys
        contexts = {one.index: SpanContext.from_bytes(one.context) for one in source.traced}
        self._copies = [
            (index, source.uids[index], queue_id)
            for queue_id, indexes in source.columns.queues
            for index in contexts.keys() & indexes
        ]
        for index, uid, queue_id in self._copies:
            definition = host.registry.definitions.get(queue_id)
            if definition is not None:
                self._journeys.arrived(uid, definition, contexts[index])

    def refuse(self, indexes: Sequence[int], queue_id: SlotId, reason: pb.Reason.ValueType) -> None:
        """A queue does not take some of it."""
        for index, uid, its_queue in self._copies:
            if its_queue == queue_id and index in indexes and (copy := self._copy(uid, queue_id)):
                self._journeys.enqueued(copy, _REASONS.get(reason, "other"))
                # What a full queue refuses may have to be dead-lettered yet.
                if reason in _ELSEWHERE:
                    self._journeys.gone(uid, queue_id)

    def done(self) -> None:
        """What was not refused is safe. A copy that has no place in the queue had one before, and came again."""
        for _, uid, queue_id in self._copies:
            if copy := self._copy(uid, queue_id):
                stale = copy.enqueue is not None and not copy.entered
                self._journeys.enqueued(copy)
                if stale:
                    self._journeys.gone(uid, queue_id)

    def aborted(self) -> None:
        """Its transaction never was."""
        for _, uid, queue_id in self._copies:
            if copy := self._copy(uid, queue_id):
                self._journeys.enqueued(copy, "rolled_back")
                self._journeys.gone(uid, queue_id)

    def _copy(self, uid: int, queue_id: SlotId) -> Copy | None:
        return self._journeys.live.get(uid, {}).get(queue_id)


class TracedAnswers:
    """Passes on what is answered to a batch, and listens."""

    def __init__(self, batch: TracedBatch, answers: Answers) -> None:
        self._batch = batch
        self._answers = answers

    @property
    def broken(self) -> bool:
        return self._answers.broken

    def done(self, sequence: int) -> None:
        self._batch.done()
        self._answers.done(sequence)

    def refuse(self, sequence: int, indexes: Sequence[int], queue_id: SlotId, reason: pb.Reason.ValueType) -> None:
        self._batch.refuse(indexes, queue_id, reason)
        self._answers.refuse(sequence, indexes, queue_id, reason)
