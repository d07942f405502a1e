"""Records for the ledger what becomes of dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from services.common.clients.outbound import Messages
from services.common.ledger.encoding import Mixture
from services.common.ledger.place import Keyed, LedgerPlace
from services.common.ledger.recorder import Recorder
from services.common.topology.slots import SlotId
from services.queue.machine.context import DeadLetter
from services.queue.machine.record import QueueRecord, uids_of
from services.queue.partitions.partition import Partition
from services.queue.partitions.registry import Registry
from services.rpc.ledger_pb2 import ROUTED

Letters = Sequence[tuple[DeadLetter, Partition]]
_Told: TypeAlias = "tuple[DeadLetter, Partition, bool]"


class DeadLetterRecord:
    """Records letters queue by queue, even if their queues are deleted."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        self._recorder = recorder
        self._registry = registry

    def dropped(self, letters: Letters, reason: str) -> None:
        """The letters are dropped."""
        for record, group, _ in self._by_queue((*each, False) for each in letters):
            target = group[0].queue.dead_letter_exchange or ""
            record.dropped(uids_of(letter.entry for letter in group), reason, target)

    def sent_on(self, letters: Letters, uids: Sequence[int], again: Sequence[bool]) -> None:
        """The letters go on, some of them `again`, each as the message at the same place in `uids`, which are
        consecutive.
        """
        first = uids[0]
        told = ((*each, known) for each, known in zip(letters, again, strict=True))
        for record, group, known in self._by_queue(told):
            target = group[0].queue.dead_letter_exchange or ""
            successors = range(first, first + len(group))
            first += len(group)
            tell = record.dead_lettered_again if known else record.dead_lettered
            tell(uids_of(letter.entry for letter in group), group[0].reason, target, successors)

    def routed(self, messages: Messages) -> None:
        """The queues to which they go as new messages."""
        bases: dict[tuple[str, str, SlotId], LedgerPlace | None] = {}
        found: dict[SlotId, tuple[list[Keyed], list[int]]] = {}
        for uid, facts, targets in zip(messages.uids, messages.facts, messages.targets, strict=True):
            for queue_id in targets:
                way = facts.virtual_host, facts.exchange, queue_id
                if way not in bases:
                    bases[way] = self._base(*way)
                if base := bases[way]:
                    places, uids = found.setdefault(queue_id, ([], []))
                    places.append((base, facts.routing_key))
                    uids.append(uid)
        for places, uids in found.values():
            self._recorder.record_each(ROUTED, Mixture(places, range(len(places))), uids)

    def _base(self, virtual_host: str, exchange: str, queue_id: SlotId) -> LedgerPlace | None:
        definition = self._registry.definitions.get(queue_id)
        if definition is None:
            return None
        return LedgerPlace(virtual_host, exchange, queue=definition.name, partition=definition.partition)

    def _by_queue(self, letters: Iterable[_Told]) -> Iterator[tuple[QueueRecord, list[DeadLetter], bool]]:
        if not self._recorder.on:
            return
        for _, group in groupby(letters, lambda its: (its[1].number, its[0].queue.queue_id, its[0].reason, its[2])):
            some = list(group)
            letter, partition, again = some[0]
            yield partition.context.record_of(letter.queue), [each for each, _, _ in some], again
