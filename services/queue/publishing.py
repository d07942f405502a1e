"""A publish batch: its runs go to their queues, what is durable to the journal, and refusals back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial

from services.common.clock import epoch_ms
from services.common.ledger.place import Place
from services.common.ledger.stages import QUEUE_DELETED
from services.common.uid import origin_of
from services.queue.arrival import Arrival
from services.queue.content import Source
from services.queue.host import Host
from services.queue.journal_draft import ContentDraft
from services.queue.recovery import facts
from services.queue.ticket import Ticket
from services.rpc import queue_pb2 as pb
from services.rpc.ledger_pb2 import DROPPED


def arrivals(host: Host, batch: pb.PublishBatch, content: ContentDraft) -> Iterator[tuple[Arrival, pb.PublishRun]]:
    """The runs of a batch, decoded."""
    uids, bodies, own = list(batch.uids), list(batch.bodies), list(batch.properties)
    interned, first, at = host.interned, 0, 0
    for run in batch.runs:
        end = first + run.count
        whole = run.count == len(uids)
        shared, properties = None, own
        if run.HasField("shared_properties"):
            shared = interned.properties(run.shared_properties)
        elif run.count == 1:
            # One message has all its properties in common with itself.
            shared = own[at]
            at += 1
        else:
            properties = own if whole else own[at : at + run.count]
            at += run.count
        yield (
            Arrival(
                interned.run(facts(run)),
                uids if whole else uids[first:end],
                properties,
                bodies if whole else bodies[first:end],
                batch.time_ms,
                content,
                first,
                shared,
                run.immediate,
            ),
            run,
        )
        first = end


def accept(host: Host, answers: Ticket, raw: bytes, batch: pb.PublishBatch, now: int) -> None:
    """Takes a batch in; the ticket is closed here but for parts that wait."""
    content = ContentDraft(host.take_id, Source(raw, batch))
    for arrival, run in arrivals(host, batch, content):
        _offer(host, answers, arrival, run.queue_ids, now, resent=run.resent)
    _journal(host, content, answers)
    answers.part_done()


def _offer(host: Host, ticket: Ticket, arrival: Arrival, queue_ids: Sequence[int], now: int, *, resent: bool) -> None:
    queues = host.registry.queues
    for queue_id in queue_ids:
        queue = queues.get(queue_id)
        if queue is None:
            _absent(host, ticket, arrival, queue_id, resent=resent)
            continue
        if ticket.turned_away and ticket.overtakes(queue.options.partition, resent=resent):
            ticket.refuse(arrival.first, len(arrival.bodies), queue_id, pb.NOT_OWNER)
            continue
        durable = queue.options.durable and arrival.run.persistent
        mine = _without_known(host, ticket, arrival, queue.options.partition) if resent and durable else arrival
        if mine is None:
            continue
        skipped = len(arrival.bodies) - len(mine.bodies)
        for first, count, reason in queue.publish(mine, now):
            ticket.refuse(arrival.first + skipped + first, count, queue_id, reason)
        if durable and queue.options.partition in arrival.content.entries:
            host.registry.partitions[queue.options.partition].passed(arrival.uids[-1])


def _without_known(host: Host, ticket: Ticket, arrival: Arrival, partition: int) -> Arrival | None:
    """A resent run without the messages that were journalled already; they are done when that is on disk."""
    known = host.registry.partitions[partition].watermarks.get(origin_of(arrival.uids[0]), 0)
    skip = bisect_right(arrival.uids, known)
    if not skip:
        return arrival
    host.writer.barrier(ticket)
    if skip == len(arrival.uids):
        return None
    return Arrival(
        arrival.run,
        arrival.uids[skip:],
        arrival.properties[skip:] if arrival.shared is None else arrival.properties,
        arrival.bodies[skip:],
        arrival.time_ms,
        arrival.content,
        arrival.first + skip,
        arrival.shared,
        arrival.immediate,
    )


def _absent(host: Host, ticket: Ticket, arrival: Arrival, queue_id: int, *, resent: bool) -> None:
    """Waits for a partition on its way here or away; else says why not."""
    if partition := host.registry.awaited(queue_id):
        ticket.pending += 1
        partition.waiting.append(partial(_offer_later, host, ticket, arrival, queue_id, resent=resent))
    else:
        reason = host.registry.missing(queue_id)
        if reason == pb.NOT_OWNER:
            ticket.turned_away.add(host.registry.definitions[queue_id].partition)
        else:
            _tell_deleted(host, arrival, queue_id)
        ticket.refuse(arrival.first, len(arrival.bodies), queue_id, reason)


def _tell_deleted(host: Host, arrival: Arrival, queue_id: int) -> None:
    """The record names the queue if it was deleted lately."""
    place = Place(arrival.run.virtual_host)
    if definition := host.registry.departed.get(queue_id):
        place = place._replace(queue=definition.name, partition=definition.partition)
    host.recorder.record(DROPPED, place, arrival.span(0, len(arrival.uids)), reason=QUEUE_DELETED)


def _offer_later(host: Host, ticket: Ticket, arrival: Arrival, queue_id: int, *, resent: bool) -> None:
    if ticket.abandoned:
        return
    # The journal has taken, or has not needed, what was ready at first: this part is a content of its own.
    arrival.content = ContentDraft(host.take_id, arrival.content.source)
    _offer(host, ticket, arrival, (queue_id,), epoch_ms(), resent=resent)
    _journal(host, arrival.content, ticket)
    ticket.part_done()


def _journal(host: Host, content: ContentDraft, ticket: Ticket) -> None:
    if content.entries:
        host.writer.add(content, host.registry.partitions, ticket)
