"""Messages on their way to queues: as their publisher sees them, and attempts to send some to one queue process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from typing import NamedTuple, Protocol

from services.common.message import columns, facts_table, in_front
from services.common.message.alike import are_alike, objects, total
from services.common.message.facts import Facts
from services.common.message.indexes import choice, condensed, pick
from services.common.message.weight import BESIDE, FRAME_BYTES, facts_weight, weight
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

_APART_MS = 50  # times to live that differ by less look the same to a client
_QUEUE = 6  # bytes of one message in one queue

Targets = tuple[SlotId, ...]
"""The slots where a message goes."""


LetterOf = tuple[SlotId, int]
"""Of what a message is the dead letter: an entry's slot and uid."""

_NO_LETTER: LetterOf = SlotId(0), 0


class Refused(NamedTuple):
    """Messages, by their numbers in what was published, that a queue does not take."""

    numbers: Sequence[int]
    queue_id: SlotId
    reason: int


class Ticket(Protocol):
    """Waits for the outcome of published messages."""

    def settled(self, numbers: Sequence[int], refusals: list[Refused]) -> None:
        """Every queue process concerned has answered for the messages of these numbers.

        Called once for each message; messages that go to the same processes are told of together.
        """


@dataclass(slots=True)
class Messages:
    """Columns over the messages that one publisher sends together; `numbers` are its own names for them, ascending."""

    uids: Sequence[int]  # ascending
    facts: Sequence[Facts]
    properties: Sequence[bytes]
    bodies: Sequence[bytes]
    targets: Sequence[Targets]
    numbers: Sequence[int]
    immediate: frozenset[int] = frozenset()  # numbers of those to be refused unless a consumer can take them at once
    traces: Mapping[int, bytes] | None = None  # contexts by number, of those that get spans
    letters: Mapping[int, LetterOf] | None = None  # by number, of those that are dead letters
    size: int = field(init=False)  # bytes that all of them take in a frame, with what is said about each

    def __post_init__(self) -> None:
        size = weight(self.properties, self.bodies) + BESIDE * len(self.bodies)
        self.size = size + facts_weight(objects(self.facts).values()) + _QUEUE * total(self.targets)

    def __len__(self) -> int:
        return len(self.bodies)

    def part(self, indexes: Sequence[int]) -> Messages:
        """Those at these indexes, which ascend."""
        if len(indexes) == len(self):
            return self
        return Messages(
            pick(self.uids, indexes),
            pick(self.facts, indexes),
            pick(self.properties, indexes),
            pick(self.bodies, indexes),
            pick(self.targets, indexes),
            pick(self.numbers, indexes),
            self.immediate,
            self.traces,
            self.letters,
        )

    def by_queue(self) -> dict[SlotId, Sequence[int]]:
        """The indexes of the messages for each queue."""
        targets = self.targets
        if are_alike(targets):
            return dict.fromkeys(targets[0], range(len(targets)))
        found: dict[SlotId, list[int]] = {}
        for index, queue_ids in enumerate(targets):
            for queue_id in queue_ids:
                if queue_id in found:
                    found[queue_id].append(index)
                else:
                    found[queue_id] = [index]
        return {queue_id: condensed(indexes) for queue_id, indexes in found.items()}


@dataclass(slots=True)
class Delivery:
    """Messages that go to the same processes: `pending` counts the attempts without an answer; the refusals so far."""

    ticket: Ticket | None
    numbers: Sequence[int]
    pending: int = 0
    refusals: list[Refused] = field(default_factory=list)

    def refuse(self, numbers: Sequence[int], queue_id: SlotId, reason: int) -> None:
        """A queue does not take some of the messages."""
        self.refusals.append(Refused(numbers, queue_id, reason))

    def finish(self) -> None:
        """One attempt is answered in full."""
        self.pending -= 1
        if not self.pending and self.ticket:
            self.ticket.settled(self.numbers, self.refusals)


@dataclass(slots=True)
class Attempt:
    """Messages as they go to the queues of one process; `queues` maps a queue to the indexes of its messages."""

    messages: Messages
    queues: dict[SlotId, Sequence[int]]
    time_ms: int
    delivery: Delivery
    size: int
    resent: bool = False
    lost_with: frozenset[str] = frozenset()  # queue processes that may have died of it
    turned_away: list[tuple[SlotId, Sequence[int]]] = field(default_factory=list)  # by queue: made into new attempts

    def left(self) -> Mapping[SlotId, Sequence[int]]:
        """The indexes of each queue's messages, without those that have become attempts of their own."""
        if not self.turned_away:
            return self.queues
        gone: dict[SlotId, set[int]] = {}
        for queue_id, indexes in self.turned_away:
            gone.setdefault(queue_id, set()).update(indexes)
        left = {
            queue_id: condensed([index for index in indexes if index not in gone[queue_id]])
            if queue_id in gone
            else indexes
            for queue_id, indexes in self.queues.items()
        }
        return {queue_id: indexes for queue_id, indexes in left.items() if indexes}

    def asks_again(self, queues: Mapping[SlotId, Sequence[int]]) -> None:
        """Takes back refusals by these queues of the messages at these indexes, as they will be asked again."""
        if not self.delivery.refusals:
            return
        again = {queue_id: frozenset(self.numbers(indexes)) for queue_id, indexes in queues.items()}
        self.delivery.refusals = [
            Refused(kept, queue_id, reason)
            for numbers, queue_id, reason in self.delivery.refusals
            if (kept := [number for number in numbers if number not in again.get(queue_id, ())])
        ]

    def part(self, queues: Mapping[SlotId, Sequence[int]], *, resent: bool = True) -> Attempt:
        """An attempt with only these queues and these indexes of each; to be sent again, or elsewhere."""
        indexes = _union(queues.values(), len(self.messages))
        messages = self.messages.part(indexes)
        if len(indexes) == len(self.messages):
            its = dict(queues)
        else:
            places = {index: place for place, index in enumerate(indexes)}
            its = {queue_id: condensed([places[at] for at in some]) for queue_id, some in queues.items()}
        return Attempt(
            messages,
            its,
            self.time_ms,
            self.delivery,
            messages.size,
            resent or self.resent,
            self.lost_with,
        )

    def joins(self, other: Attempt) -> bool:
        """Takes over the queues of another attempt if it has the same messages; then one answer serves both."""
        same = self.delivery is other.delivery and list(self.messages.uids) == list(other.messages.uids)
        if not same or self.resent != other.resent or self.queues.keys() & other.queues.keys():
            return False
        self.queues.update(other.queues)
        self.lost_with |= other.lost_with
        self.delivery.pending -= 1
        return True

    def numbers(self, indexes: Sequence[int]) -> Sequence[int]:
        """The publisher's numbers of the messages at these indexes."""
        return pick(self.messages.numbers, indexes)

    def refuse(self, reason: int) -> None:
        """Every queue refuses all of it; it is not sent again."""
        for queue_id, indexes in self.queues.items():
            self.delivery.refuse(self.numbers(indexes), queue_id, reason)
        self.delivery.finish()

    def traced(self, offset: int) -> Iterator[pb.Traced]:
        """Its traced messages, in a batch where its first one is at `offset`."""
        traces = self.messages.traces or {}
        for index, number in enumerate(self.messages.numbers, offset):
            if context := traces.get(number):
                yield pb.Traced(index=index, context=context)


def _union(some: Iterable[Sequence[int]], count: int) -> Sequence[int]:
    found = list(some)
    if any(len(indexes) == count for indexes in found):
        return range(count)
    if len(found) == 1:
        return found[0]
    return condensed(sorted({index for indexes in found for index in indexes}))


def fitting(attempts: list[Attempt]) -> tuple[list[Attempt], int]:
    """The first attempts that fit into a frame, one at least, and their size."""
    total = 0
    for index, attempt in enumerate(attempts):
        if index and total + attempt.size > FRAME_BYTES:
            return attempts[:index], total
        total += attempt.size
    return attempts, total


def frames_of(messages: Messages) -> Iterator[Messages]:
    """The same messages in pieces that fit into a frame each; a message too large for a frame is a piece alone."""
    if messages.size <= FRAME_BYTES:
        yield messages
        return
    first = size = 0
    for index in range(len(messages)):
        its = messages.part(range(index, index + 1)).size
        if index > first and size + its > FRAME_BYTES:
            yield messages.part(range(first, index))
            first, size = index, 0
        size += its
    yield messages.part(range(first, len(messages)))


def encode(
    attempts: list[Attempt],
    sequence: int,
    transaction: int,
    head: pb.PublishBatch | None = None,
    *,
    keys: bool = False,
) -> bytes | in_front.Parts:
    """A batch in its wire form; `head` holds the fields that are filled in already, `keys` is as `columns.put` says."""
    time_ms = attempts[0].time_ms if attempts else 0
    batch = pb.PublishBatch(sequence=sequence, transaction=transaction, time_ms=time_ms)
    if head is not None:
        batch.MergeFrom(head)
    if attempts:
        _add_columns(batch, attempts, keys=keys)
        _add_queues(batch, attempts)
        _add_letters(batch, attempts)
    if any(not -_APART_MS <= attempt.time_ms - time_ms <= _APART_MS for attempt in attempts):
        for attempt in attempts:  # some have waited for an owner
            batch.times_ms.extend(repeat(attempt.time_ms, len(attempt.messages)))
    if batch.shared_sizes:
        return batch.SerializeToString()
    bodies = _bodies(attempts)
    if in_front.pays(bodies, sum(attempt.size for attempt in attempts)):
        return in_front.batch(in_front.PUBLISHES, bodies, batch)
    batch.bodies.extend(bodies)
    return batch.SerializeToString()


def _add_columns(batch: pb.PublishBatch, attempts: list[Attempt], *, keys: bool) -> None:
    if len(attempts) == 1:
        messages = attempts[0].messages
        batch.uids.extend(messages.uids)
        _put(batch, messages.facts, messages.properties, keys=keys)
        return
    facts: list[Facts] = []
    properties: list[bytes] = []
    for attempt in attempts:
        messages = attempt.messages
        batch.uids.extend(messages.uids)
        facts += messages.facts
        properties += messages.properties
    _put(batch, facts, properties, keys=keys)


def _put(batch: pb.PublishBatch, facts: Sequence[Facts], properties: Sequence[bytes], *, keys: bool) -> None:
    columns.put(batch, facts, properties, keys=keys)
    if batch.keys:
        facts_table.note(facts)


def _add_letters(batch: pb.PublishBatch, attempts: list[Attempt]) -> None:
    if not any(attempt.messages.letters for attempt in attempts):
        return
    for attempt in attempts:
        its = attempt.messages.letters or {}
        letters = [its.get(number, _NO_LETTER) for number in attempt.messages.numbers]
        batch.letter_queues.extend([queue_id for queue_id, _ in letters])
        batch.letter_uids.extend([uid for _, uid in letters])


def _bodies(attempts: list[Attempt]) -> Sequence[bytes]:
    if len(attempts) == 1:
        return attempts[0].messages.bodies
    return [body for attempt in attempts for body in attempt.messages.bodies]


def _add_queues(batch: pb.PublishBatch, attempts: list[Attempt]) -> None:
    offsets = [0, *accumulate(len(attempt.messages) for attempt in attempts)]
    queues: dict[SlotId, Sequence[int]] = {}
    for offset, attempt in zip(offsets, attempts, strict=False):
        for queue_id, indexes in attempt.queues.items():
            queues[queue_id] = _joined(queues.get(queue_id), indexes, offset)
        _add_rare(batch, attempt, offset)
    for queue_id, indexes in queues.items():
        batch.queues.add(queue_id=queue_id, **choice(indexes))


def _joined(before: Sequence[int] | None, indexes: Sequence[int], offset: int) -> Sequence[int]:
    if isinstance(indexes, range):
        more: Sequence[int] = range(indexes.start + offset, indexes.stop + offset)
    else:
        more = [index + offset for index in indexes]
    if before is None:
        return more
    if isinstance(before, range) and isinstance(more, range) and before.stop == more.start:
        return range(before.start, more.stop)
    if isinstance(before, list):
        before += more  # made by an earlier call
        return before
    return [*before, *more]


def _add_rare(batch: pb.PublishBatch, attempt: Attempt, offset: int) -> None:
    messages = attempt.messages
    if attempt.resent:
        batch.resent.extend(range(offset, offset + len(messages)))
    if messages.immediate:
        numbers = enumerate(messages.numbers, offset)
        batch.immediate.extend(index for index, number in numbers if number in messages.immediate)
    if messages.traces:
        batch.traced.extend(attempt.traced(offset))
