"""A publish batch: its messages go to their queues, what is durable to the journal, and refusals back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.common.containment import contained
from services.common.ledger.place import LedgerPlace
from services.common.ledger.stages import QUEUE_DELETED
from services.common.topology.slots import SlotId
from services.common.uid import origin_of
from services.queue.host import Host
from services.queue.journal.content import Source
from services.queue.journal.known import Known, Taken
from services.queue.journal.ticket import Ticket
from services.queue.machine.arrival import Arrival
from services.queue.machine.columns import Columns
from services.queue.machine.entrance import Refused
from services.queue.machine.journal_draft import ContentDraft
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import Awaited, Partition, PartitionState
from services.rpc import queue_pb2 as pb
from services.rpc.ledger_pb2 import DROPPED


def arrivals(columns: Columns, content: ContentDraft) -> Iterator[tuple[SlotId, Arrival, bool]]:
    """What a batch brings: the queue, the messages for it, and whether they are resent."""
    for queue_id, indexes in columns.queues:
        for some in columns.alike(indexes):
            yield queue_id, Arrival(columns, some.indexes, some.time_ms, content, immediate=some.immediate), some.resent


def accept(host: Host, answers: Ticket, source: Source, now: int) -> None:
    """Takes a batch in; the ticket's own part is done here, parts that wait are done later."""
    content = ContentDraft(host.take_id, source)
    try:
        offer = _Offer(host, answers, content, now)
        for queue_id, arrival, resent in arrivals(source.columns, content):
            offer.to(queue_id, arrival, resent=resent)
        offer.close()
    except Exception:
        answers.give_up()
        raise
    answers.part_done()


class _Offer:
    """What a batch, or a part of it that had to wait, brings to the partitions of this process."""

    __slots__ = ("_content", "_host", "_later", "_now", "_taken", "_ticket", "_uids")

    def __init__(self, host: Host, ticket: Ticket, content: ContentDraft, now: int) -> None:
        self._host = host
        self._ticket = ticket
        self._content = content
        self._now = now
        self._uids: Sequence[int] = content.source.uids
        self._taken: dict[int, tuple[Known, Taken]] = {}  # by partition
        self._later: dict[Awaited, _Later] = {}  # one partition may have several: a sealed queue waits by itself

    def to(self, queue_id: SlotId, arrival: Arrival, *, resent: bool) -> None:
        """Offers messages to their queue."""
        host, ticket, queue = self._host, self._ticket, self._host.registry.queues.get(queue_id)
        if queue is None or (host.claims and self._is_claimed(queue, arrival)):
            self._absent(arrival, queue_id, resent=resent)
            return
        number = queue.options.partition
        if number in ticket.turned_away or (number not in self._taken and ticket.terms.is_late(number)):
            ticket.turn_away(number, arrival.indexes, queue_id)
            return
        try:
            for part in self._new(arrival, queue_id, number) if resent else (arrival,):
                if (resent or host.untold) and (untold := host.untold.awaited(queue, part, resent=resent)):
                    self._wait(untold, queue_id, part, resent=resent)
                    continue
                refused = queue.publish(part, self._now)
                if refused:
                    self._took_some(number, queue_id, part, refused)
                else:
                    self._took(number, queue_id, part.indexes)
        except Exception as fault:  # noqa: BLE001 - one queue's: the others take the messages
            # Some of it may be in the queue; if it is resent it is taken again, and is there twice at worst.
            contained("taking messages into a queue", fault, queue_id=queue_id)
            ticket.refuse(arrival.indexes, queue_id, pb.OTHER)

    def close(self) -> None:
        """Passes what is durable to the journal."""
        host, content = self._host, self._content
        if content.entries:
            for number, entries in content.entries.items():
                known, taken = self._taken_by(number)
                known.journalled(entries.id, taken, entries.runs)
            host.writer.add(content, host.registry.partitions, self._ticket)

    def _took(self, number: int, queue_id: SlotId, indexes: Sequence[int]) -> None:
        known, taken = self._taken.get(number) or self._taken_by(number)
        known.took(taken, queue_id, indexes)

    def _taken_by(self, number: int) -> tuple[Known, Taken]:
        found = self._taken.get(number)
        if found is None:
            partition, taken = self._host.registry.partitions[number], Taken(origin_of(self._uids[0]), self._uids)
            found = self._taken[number] = partition.known, taken
            self._ticket.took(partition, taken)
        return found

    def _took_some(self, number: int, queue_id: SlotId, arrival: Arrival, refused: list[Refused]) -> None:
        first, indexes = 0, arrival.indexes
        for at, count, reason in refused:
            if reason == pb.NONE:
                self._was_here(number, queue_id, [indexes[at : at + count]])
            else:
                self._ticket.refuse(indexes[at : at + count], queue_id, reason)
            if at > first:
                self._took(number, queue_id, indexes[first:at])
            first = at + count
        if first < len(arrival):
            self._took(number, queue_id, indexes[first:])

    def _new(self, arrival: Arrival, queue_id: SlotId, number: int) -> list[Arrival]:
        """The resent messages that were not taken before; the others are done when they are safe on disk."""
        partition = self._host.registry.partitions[number]
        new, old = partition.known.split(queue_id, arrival.uids)
        if not old:
            return [arrival]
        self._was_here(number, queue_id, [arrival.indexes[first:end] for first, end in old])
        return [arrival.part(first, end) for first, end in new]

    def _was_here(self, number: int, queue_id: SlotId, parts: list[Sequence[int]]) -> None:
        """Messages that are not taken again: answered when what was here before is safe on disk."""
        self._ticket.pending += 1
        again = _Again(self._ticket, self._host.registry.partitions[number], queue_id, parts)
        self._host.writer.barrier(again)
        again.part_done()

    def _absent(self, arrival: Arrival, queue_id: SlotId, *, resent: bool) -> None:
        """Waits while the partition is read back or leaves, or the queue is claimed; else refuses, with the reason."""
        registry, ticket = self._host.registry, self._ticket
        if awaited := registry.awaited(queue_id) or self._host.claims.awaited(registry.queues.get(queue_id)):
            self._wait(awaited, queue_id, arrival, resent=resent)
        elif (reason := registry.missing(queue_id)) == pb.NOT_OWNER:
            ticket.turn_away(registry.definitions[queue_id].partition, arrival.indexes, queue_id)
        elif reason == pb.OTHER:
            ticket.refuse(arrival.indexes, queue_id, reason)
        else:
            _tell_deleted(self._host, arrival, queue_id)
            ticket.refuse(arrival.indexes, queue_id, pb.UNKNOWN_QUEUE)

    def _wait(self, awaited: Awaited, queue_id: SlotId, arrival: Arrival, *, resent: bool) -> None:
        later = self._later.get(awaited)
        if later is None:
            later = self._later[awaited] = _Later(self._host, self._ticket, self._content)
            self._ticket.pending += 1
            awaited.waiting.append(later.offer)
        later.arrivals.append((queue_id, arrival, resent))

    def _is_claimed(self, queue: Queue, arrival: Arrival) -> bool:
        """Whether it may have more room than it knows, since some of what waits is a client's, and is not found yet.

        Or its consumers may be able to take at once what is given to nobody now. What comes behind such waits as well.
        """
        claimed = self._host.claims.awaited(queue)
        return claimed is not None and (arrival.immediate or bool(claimed.waiting) or not queue.seeking.admits_all)


class _Later:
    """The messages of a batch that wait for one partition, or for one queue of it."""

    __slots__ = ("_content", "_host", "_ticket", "arrivals")

    def __init__(self, host: Host, ticket: Ticket, content: ContentDraft) -> None:
        self._host = host
        self._ticket = ticket
        self._content = content
        self.arrivals: list[tuple[SlotId, Arrival, bool]] = []  # queue, messages, whether they are resent

    def offer(self) -> None:
        """The partition is served now, or is not coming any more."""
        if self._ticket.abandoned:
            return
        # The messages that did not wait may be in the journal already: these are a content of their own.
        content = ContentDraft(self._host.take_id, self._content.source)
        try:
            self._offer(content)
        except Exception as fault:  # noqa: BLE001 - these messages', and others have waited too
            contained("taking messages that have waited", fault, queues=[queue_id for queue_id, _, _ in self.arrivals])
            for queue_id, arrival, _ in self.arrivals:
                self._ticket.refuse(arrival.indexes, queue_id, pb.OTHER)
            self._ticket.not_safe()
        self._ticket.part_done()

    def _offer(self, content: ContentDraft) -> None:
        offer = _Offer(self._host, self._ticket, content, self._host.now())
        for queue_id, arrival, resent in self.arrivals:
            arrival.content = content
            offer.to(queue_id, arrival, resent=resent)
        offer.close()


class _Again:
    """Messages that were taken before: done when everything so far is on disk, if the partition is still here."""

    __slots__ = ("_partition", "_parts", "_queue_id", "_ticket", "pending")

    def __init__(self, ticket: Ticket, partition: Partition, queue_id: SlotId, parts: list[Sequence[int]]) -> None:
        """`parts` are their indexes."""
        self._ticket = ticket
        self._partition = partition
        self._queue_id = queue_id
        self._parts = parts
        self.pending = 1

    def part_done(self) -> None:
        self.pending -= 1
        if self.pending:
            return
        if self._partition.state is PartitionState.GONE:
            # It may have left before they were on disk. The next owner knows which of them are.
            for indexes in self._parts:
                self._ticket.turn_away(self._partition.number, indexes, self._queue_id)
        self._ticket.part_done()

    def part_failed(self) -> None:
        for indexes in self._parts:
            self._ticket.refuse(indexes, self._queue_id, pb.OTHER)
        self._ticket.part_done()


def _tell_deleted(host: Host, arrival: Arrival, queue_id: SlotId) -> None:
    """The record names the queue if it was deleted lately."""
    place = LedgerPlace(arrival.facts[0].virtual_host)
    if definition := host.registry.departed.get(queue_id):
        place = place._replace(queue=definition.name, partition=definition.partition)
    host.recorder.record(DROPPED, place, arrival.span(0, len(arrival.uids)), reason=QUEUE_DELETED)
