"""What one queue tells the ledger, heard for the spans of its traced messages too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from services.common.ledger import stages
from services.common.ledger.place import LedgerPlace
from services.common.telemetry import conventions as c
from services.queue.machine.record import QueueRecord

if TYPE_CHECKING:
    from services.common.ledger.recorder import Recorder
    from services.queue.machine.consumers import Consumer
    from services.queue.machine.options import QueueOptions
    from services.queue.observe.journeys import Journeys


class TracedRecord(QueueRecord):
    """See QueueRecord. The ledger hears everything; `on` is asked anew for every batch."""

    __slots__ = ("_journeys", "_ledger_on", "_queue_id")

    def __init__(self, recorder: Recorder, options: QueueOptions, epoch: int, journeys: Journeys) -> None:
        self._journeys = journeys
        self._queue_id = options.queue_id
        super().__init__(recorder, options, epoch)

    @property
    def on(self) -> bool:
        return self._ledger_on or bool(self._journeys.live)

    @on.setter
    def on(self, ledger_on: bool) -> None:
        self._ledger_on = ledger_on

    def enqueued(self, uids: Sequence[int]) -> None:
        super().enqueued(uids)
        if self._journeys.live:
            for _, copy in self._journeys.copies(self._queue_id, uids):
                copy.entered = True
                copy.attributes[c.EPOCH] = self.place.epoch
                if copy.enqueue:
                    copy.enqueue.attributes[c.EPOCH] = self.place.epoch

    def delivered(self, place: LedgerPlace, uids: Sequence[int], consumer: Consumer | None = None) -> None:
        super().delivered(place, uids, consumer)
        if self._journeys.live and (consumer is None or not consumer.browse):
            for uid, copy in self._journeys.copies(self._queue_id, uids):
                self._journeys.delivered(uid, copy, consumer)

    def settled(self, uids: Sequence[int], outcome: str = stages.ACCEPTED) -> None:
        super().settled(uids, outcome)
        # What was rejected is dropped, or goes on, next.
        if outcome == stages.ACCEPTED:
            self._gone(uids)

    def _gone(self, uids: Sequence[int]) -> None:
        if self._journeys.live:
            for uid, _ in list(self._journeys.copies(self._queue_id, uids)):
                self._journeys.gone(uid, self._queue_id)

    def moved(self, uids: Sequence[int], target: str, successors: range) -> None:
        super().moved(uids, target, successors)
        self._gone(uids)

    def requeued(self, uids: Sequence[int], reason: str) -> None:
        super().requeued(uids, reason)
        if self._journeys.live:
            for _, copy in self._journeys.copies(self._queue_id, uids):
                self._journeys.came_back(copy, counts=reason != stages.NOT_SENT)

    def dropped(self, uids: Sequence[int], reason: str, target: str = "") -> None:
        super().dropped(uids, reason, target)
        if self._journeys.live:
            for uid, copy in list(self._journeys.copies(self._queue_id, uids)):
                if not copy.entered:
                    self._journeys.enqueued(copy, reason)
                self._journeys.gone(uid, self._queue_id, reason if copy.entered else "", target)


def queue_record(recorder: Recorder, epoch: int, journeys: Journeys | None, options: QueueOptions) -> QueueRecord:
    """What a queue tells the ledger, and the spans of its traced messages where there are any."""
    if journeys is None:
        return QueueRecord(recorder, options, epoch)
    return TracedRecord(recorder, options, epoch, journeys)
