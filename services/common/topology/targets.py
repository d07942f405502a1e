"""Where a message goes, some of it perhaps not if it came on a connection that consumes there."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Self

from services.common.topology.slots import SlotId, first_slots


class NotLocal(tuple[SlotId, ...]):  # noqa: SLOT001 - a tuple may have none but empty ones
    """Slots. Those `not_local` were reached by bindings alone that pass on nothing of their consumers' own."""

    not_local: frozenset[SlotId]

    def __new__(cls, queue_ids: Iterable[SlotId], not_local: Iterable[SlotId]) -> Self:
        made = super().__new__(cls, queue_ids)
        made.not_local = frozenset(not_local)
        return made

    def __eq__(self, other: object) -> bool:
        """Others that are equal as tuples go to all of them."""
        return isinstance(other, NotLocal) and self.not_local == other.not_local and super().__eq__(other)

    def __hash__(self) -> int:
        return hash((tuple(self), self.not_local))

    def of_consumer(self, consumed: AbstractSet[SlotId]) -> tuple[SlotId, ...]:
        """What is left of it for what came on a connection that consumes these."""
        return tuple(each for each in self if each not in self.not_local or each not in consumed)


def targets_of(queue_ids: Iterable[int], not_local: Iterable[int]) -> tuple[SlotId, ...]:
    """Where a message for these queues goes, as simple as it can be said."""
    slots = first_slots(queue_ids)
    return NotLocal(slots, first_slots(not_local)) if not_local else tuple(slots)
