"""Slots: what a queue is spread over. To its owner each is a queue: it has messages, consumers, a partition, an id.

Topology (names, bindings, arguments, lives) is said of queues. Whatever carries messages names slots: tables of
gateways and queue processes, streams between them, the journal. Those call a slot's id `queue_id`, as the contracts do.
Today every queue has one slot. A router that makes more gives each an id, and before it does, what one slot decides for
its queue has to be decided over all of them: deletions if unused or empty, lives, counts in answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, NewType, Protocol, cast

SlotId = NewType("SlotId", int)
"""The id of one incarnation of a slot: never used again."""

FIRST: Final = 0
"""The slot that each queue has; its id is the queue's."""


class SlotName(NamedTuple):
    """What a slot is called; another slot, or incarnation, may come to be called so."""

    virtual_host: str
    queue: str
    slot: int = FIRST


class Definition(Protocol):
    """Of a slot, as the router tells it (`QueueDefinition`)."""

    id: int
    virtual_host: str
    name: str
    slot: int
    slot_id: int


def slot_of(definition: Definition) -> SlotId:
    """The id of the slot that is told."""
    return SlotId(definition.slot_id or definition.id)


def name_of(definition: Definition) -> SlotName:
    """What it is called."""
    return SlotName(definition.virtual_host, definition.name, definition.slot)


def first_slot(queue_id: int) -> SlotId:
    """The id of a queue's first slot."""
    return SlotId(queue_id)


def first_slots(queue_ids: Iterable[int]) -> Iterable[SlotId]:
    """Those of some queues: nothing is done for each, messages wait for this."""
    return slots_in(queue_ids)


def slots_in(ids: Iterable[int]) -> Iterable[SlotId]:
    """A column of slots' ids, as a contract has it."""
    return cast("Iterable[SlotId]", ids)
