"""A frame for a queue process, which collects what a gateway asks for until it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from services.common.message import in_front
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb


class Settlement(NamedTuple):
    """The outcome of deliveries from one queue."""

    queue_id: SlotId
    outcome: pb.Outcome.ValueType
    uids: Sequence[int]


@dataclass(slots=True)
class Frame:
    """`fields` are all but the batches, which take about `size` bytes; `settled` is what the settlements say."""

    fields: pb.LinkFrame = field(default_factory=pb.LinkFrame)
    batches: list[bytes | in_front.Parts] = field(default_factory=list)
    size: int = 0
    settled: list[Settlement] = field(default_factory=list)

    def wire(self) -> bytes | in_front.Parts:
        """Its wire form; nothing may be added to it any more."""
        if any(isinstance(batch, list) for batch in self.batches):
            return in_front.frame(in_front.PUBLISHES, self.batches, self.fields)
        self.fields.publishes.extend(batch for batch in self.batches if isinstance(batch, bytes))
        return self.fields.SerializeToString()
