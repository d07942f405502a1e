"""A frame for a queue process, which collects what a gateway asks for until it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from services.common.clients.change import UNCHANGED, Change, Handled
from services.common.message import in_front
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

Outcome: TypeAlias = pb.Outcome.ValueType


class Settlement(NamedTuple):
    """The outcome of deliveries from one queue."""

    queue_id: SlotId
    outcome: Outcome
    uids: Sequence[int]
    change: Change = UNCHANGED


@dataclass(slots=True)
class Frame:
    """`fields` are all but the batches, which take about `size` bytes; `settled` is what the settlements say."""

    fields: pb.LinkFrame = field(default_factory=pb.LinkFrame)
    batches: list[bytes | in_front.Parts] = field(default_factory=list)
    size: int = 0
    settled: list[Settlement] = field(default_factory=list)
    change: Change = UNCHANGED  # of the last settlement

    def settle(self, said: Settlement, transaction: int, term: int) -> None:
        """Adds a settlement, to the last one where they are alike. Without a transaction it is kept."""
        queue_id, outcome, uids, change = said
        if not transaction:
            self.settled.append(said)
        if had := outcome == pb.RETURN:
            outcome = pb.RESTORE
        settles = self.fields.settles
        last, same = settles[-1] if settles else None, (queue_id, outcome, had, transaction, term)
        if (
            last
            and (last.queue_id, last.outcome, last.had, last.transaction, last.term) == same
            and (change is UNCHANGED is self.change or _is_change(last, change))
        ):
            last.uids.extend(uids)
            return
        its = settles.add(queue_id=queue_id, outcome=outcome, had=had, uids=uids, transaction=transaction, term=term)
        self.change = change
        if change is not UNCHANGED:
            its.annotations, its.consumer, its.not_again = change.annotations, change.handle, change.not_again

    def wire(self) -> bytes | in_front.Parts:
        """Its wire form; nothing may be added to it any more."""
        if any(isinstance(batch, list) for batch in self.batches):
            return in_front.frame(in_front.PUBLISHES, self.batches, self.fields)
        self.fields.publishes.extend(batch for batch in self.batches if isinstance(batch, bytes))
        return self.fields.SerializeToString()


def settlements_of(them: Iterable[pb.Settle], consumers: Mapping[int, Handled]) -> list[Settlement]:
    """What comes back; a consumer that has ended is none of these."""
    return [_settlement(said, consumers.get(said.consumer)) for said in them]


def _settlement(said: pb.Settle, by: Handled | None) -> Settlement:
    change = Change(said.annotations, by, said.not_again) if said.annotations or said.not_again else UNCHANGED
    return Settlement(SlotId(said.queue_id), pb.RETURN if said.had else said.outcome, said.uids, change)


def _is_change(said: pb.Settle, change: Change) -> bool:
    return (said.annotations, said.consumer, said.not_again) == (change.annotations, change.handle, change.not_again)
