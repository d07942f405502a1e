"""What becomes of dead letters, for the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from services.common.clients.outbound import Run
from services.common.ledger.place import Place
from services.common.ledger.recorder import Recorder
from services.queue.context import DeadLetter
from services.queue.partition import Partition
from services.queue.record import QueueRecord, uids_of
from services.queue.registry import Registry
from services.rpc.ledger_pb2 import ROUTED

Letters = Sequence[tuple[DeadLetter, Partition]]


class DeadLetterRecord:
    """Tells of letters queue by queue, whether their queues are still there or not."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        self._recorder = recorder
        self._registry = registry

    def dropped(self, letters: Letters, reason: str) -> None:
        """They go nowhere."""
        for record, group in self._by_queue(letters):
            target = group[0].queue.dead_letter_exchange or ""
            record.dropped(uids_of(letter.entry for letter in group), reason, target)

    def sent_on(self, letters: Letters, uids: range) -> None:
        """They go on, each as the message of the same place in `uids`."""
        for record, group in self._by_queue(letters):
            target = group[0].queue.dead_letter_exchange or ""
            successors, uids = uids[: len(group)], uids[len(group) :]
            record.dead_lettered(uids_of(letter.entry for letter in group), group[0].reason, target, successors)

    def routed(self, run: Run, uids: range) -> None:
        """Where they go as new messages."""
        for queue_id in run.queue_ids:
            if definition := self._registry.definitions.get(queue_id):
                place = Place(run.virtual_host, run.exchange, run.routing_key, definition.name, definition.partition)
                self._recorder.record(ROUTED, place, uids)

    def _by_queue(self, letters: Letters) -> Iterator[tuple[QueueRecord, list[DeadLetter]]]:
        if not self._recorder.on:
            return
        for _, group in groupby(letters, lambda pair: (pair[1].number, pair[0].queue.queue_id, pair[0].reason)):
            pairs = list(group)
            letter, partition = pairs[0]
            yield partition.context.record_of(letter.queue), [each for each, _ in pairs]
