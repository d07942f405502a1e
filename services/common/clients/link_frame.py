"""A frame for a queue process, which collects what a gateway asks for until it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from services.common.clients.change import UNCHANGED, Change, Handled
from services.common.message import in_front
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

Outcome: TypeAlias = pb.Outcome.ValueType


# On the wire, with `had` and `again`: former releases understand it.
_AS: Final = {pb.RETURN: (pb.RESTORE, True, False), pb.TRIED: (pb.RELEASE, False, True)}


def outcome_of(said: pb.Settle) -> Outcome:
    """What a settlement says, as it was meant."""
    if said.had:
        return pb.RETURN
    return pb.TRIED if said.again else said.outcome


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
    same: tuple[int, ...] = ()  # what others have to have in common with that one to be added to it

    def settle(self, said: Settlement, transaction: int, term: int) -> None:
        """Adds a settlement, to the last one where they are alike. Without a transaction it is kept."""
        queue_id, outcome, uids, change = said
        if not transaction:
            self.settled.append(said)
        same, settles = (queue_id, outcome, transaction, term), self.fields.settles
        if same == self.same and (change is UNCHANGED is self.change or _is_change(settles[-1], change)):
            settles[-1].uids.extend(uids)
            return
        its = settles.add(queue_id=queue_id, uids=uids, term=term)
        its.outcome, its.had, its.again = _AS.get(outcome) or (outcome, False, False)
        if transaction:
            its.transaction = transaction
        self.same, self.change = same, change
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
    return Settlement(SlotId(said.queue_id), outcome_of(said), said.uids, change)


def _is_change(said: pb.Settle, change: Change) -> bool:
    return (said.annotations, said.consumer, said.not_again) == (change.annotations, change.handle, change.not_again)
