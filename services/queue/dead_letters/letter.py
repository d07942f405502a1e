"""A dead letter that is being sent on: what it says now, and what it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from services.common.clients.outbound import LetterOf
from services.common.message.facts import Facts
from services.common.topology.slots import SlotId
from services.queue.dead_letters.record import Letters
from services.queue.machine.context import DeadLetter
from services.queue.machine.journal_draft import NotePlace
from services.queue.partitions.partition import Partition


@dataclass(slots=True, eq=False)
class OpenLetter:
    """`taken` are the target queues that have it, as the journal says at `place`; `tries` counts the attempts in which
    not all took it; `told`: it is on record that it goes on.
    """

    letter: DeadLetter
    partition: Partition
    properties: bytes = b""
    headers: dict[str, Any] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    taken: frozenset[SlotId] = frozenset()
    place: NotePlace | None = None
    tries: int = 0
    told: bool = False

    @property
    def size(self) -> int:
        """Bytes of what is sent."""
        return len(self.properties) + len(self.letter.entry.message.body)


def letter_of(opened: OpenLetter) -> LetterOf:
    """Its targets know it by that, whoever sends it, and as whatever message."""
    return opened.letter.queue.queue_id, opened.letter.entry.message.uid


def exchange_of(letter: DeadLetter) -> str:
    """To which it goes: by its queue's policies."""
    return letter.queue.dead_letter_exchange or ""


def facts_of(opened: OpenLetter) -> Facts:
    """Facts of the message that a letter becomes: without its time to live, which is over or counts no more."""
    letter = opened.letter
    facts = letter.entry.message.facts
    return facts._replace(exchange=exchange_of(letter), routing_key=opened.keys[0], ttl_ms=None)


def sources_of(letters: list[OpenLetter]) -> Letters:
    """As the record wants them."""
    return [(each.letter, each.partition) for each in letters]
