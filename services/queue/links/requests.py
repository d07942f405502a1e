"""Questions to one queue: get, purge, delete, inspect, and messages of it that somebody chose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from services.common.containment import contained, for_each
from services.common.errors import BrokerError, NotFound
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.journal.ticket import Written
from services.queue.links.outbox import encode
from services.queue.links.selecting import Selecting
from services.queue.machine import turn
from services.queue.machine.deliveries import Columns, DeliveryRun
from services.queue.machine.entry import Entry
from services.queue.machine.queue import Queue
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink

_LOOK_SECONDS = 0.02  # between looks whether a queue is up to date
_NOT_WRITTEN = "what was purged is gone, but may come back with the queue's next owner: that could not be written"


def queue_id_of(request: pb.QueueRequest) -> SlotId:
    """The id of the queue that the request is for."""
    kind = request.WhichOneof("request")
    return SlotId(getattr(request, kind).queue_id if kind else 0)


def answer_all(host: Host, link: PeerLink, asked: Iterable[pb.QueueRequest]) -> None:
    """Answers each request now, or when its queue can be asked."""
    if not link.broken:  # a request that has waited: its answer would be lost, and the message that a get takes
        for_each("answering a request", asked, partial(_ask, host, link), partial(_not_answered, link))


def _not_answered(link: PeerLink, request: pb.QueueRequest, error: BrokerError) -> None:
    link.outbox.frame.replies.add(id=request.id, reason=pb.OTHER, text=error.text)


def _ask(host: Host, link: PeerLink, request: pb.QueueRequest) -> None:
    registry, queue_id, now = host.registry, queue_id_of(request), host.now()
    queue = registry.serving(queue_id, request.term)
    if queue is None and (partition := registry.awaited(queue_id)):
        partition.waiting.append(partial(answer_all, host, link, (request,)))
    elif queue_id in registry.unusable and request.HasField("delete"):
        delete_unusable(host, link, request)
    elif queue is None:
        link.outbox.reply(pb.QueueReply(id=request.id, reason=registry.missing(queue_id)))
    elif deletion := registry.deleting.awaited(queue_id):
        deletion.waiting.append(partial(answer_all, host, link, (request,)))
    elif claimed := host.claims.awaited(queue):  # it would take, or count, what is not known yet to be a client's
        claimed.waiting.append(partial(answer_all, host, link, (request,)))
    elif request.HasField("get") and queue.lags(now):
        later = partial(host.when_certain, partial(answer_all, host, link, (request,)))
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, later)
    else:
        answer(host, link, request, queue, now)


def answer(host: Host, link: PeerLink, request: pb.QueueRequest, queue: Queue, now: int) -> None:
    """Carries a request out. A reply that takes longer, or waits for others, comes when it is there."""
    reply, kind = pb.QueueReply(id=request.id), request.WhichOneof("request")
    if later := _LATER.get(kind or ""):
        later(host, link, request, queue, reply)
        return
    if kind == "get":
        _get(host, link, request.get, queue, reply, now)
    else:
        queue.use.touch(now)
        reply.message_count = queue.ready_count
    reply.consumer_count = len(queue.consumers)
    link.outbox.reply(reply)


def _purge(host: Host, link: PeerLink, _request: pb.QueueRequest, queue: Queue, reply: pb.QueueReply) -> None:
    """Drops what is ready now, some in each turn: what comes meanwhile stays, wherever its place in the order is."""
    before, written = queue.picking.next_position, Written()
    reply.message_count = _purge_some(host, queue, before, written)
    rest = _purge_the_rest(host, link, queue, reply, before, written)
    host.tasks.start(rest, f"purge queue {queue.options.name}")


async def _purge_the_rest(
    host: Host, link: PeerLink, queue: Queue, reply: pb.QueueReply, before: int, written: Written
) -> None:
    """Answers when the purge is on disk, for then no later owner brings back what was purged."""
    try:
        count = reply.message_count
        while count >= turn.AT_ONCE and await _is_next(host, queue):
            count = _purge_some(host, queue, before, written)
            reply.message_count += count
        host.check_full()
        written.part_done()
        if not await written:
            reply.reason, reply.text = pb.OTHER, _NOT_WRITTEN
        elif not _is_here(host, queue):
            reply.reason = host.registry.missing(queue.options.queue_id)
    except Exception as fault:  # noqa: BLE001 - as when it is carried out at once
        reply.reason, reply.text = pb.OTHER, contained("purging a queue", fault, queue=queue.options.name).text
    reply.consumer_count = len(queue.consumers)
    link.outbox.reply(reply)


def _purge_some(host: Host, queue: Queue, before: int, written: Written) -> int:
    """Purges as many as fit into one turn; a part of `written` waits for them to be on disk."""
    count = queue.picking.purge(turn.AT_ONCE, before)
    host.writer.barrier(written)
    return count


async def _is_next(host: Host, queue: Queue) -> bool:
    """Lets other tasks have their turns; then whether the queue is still here."""
    host.check_full()
    await asyncio.sleep(0)
    await host.claims.until_claimed(queue)
    return _is_here(host, queue)


def _is_here(host: Host, queue: Queue) -> bool:
    return host.registry.queues.get(queue.options.queue_id) is queue


def _select(host: Host, link: PeerLink, request: pb.QueueRequest, queue: Queue, reply: pb.QueueReply) -> None:
    link.selections[request.id] = selecting = Selecting(link, queue, request.select)
    _next_portion(host, link, request.id, selecting, reply)


def _more(host: Host, link: PeerLink, request: pb.QueueRequest, queue: Queue, reply: pb.QueueReply) -> None:
    selecting = link.selections.get(request.more.number)
    if selecting is None or selecting.queue is not queue:
        link.outbox.reply(pb.QueueReply(id=request.id, reason=pb.NOT_OWNER))
    else:
        _next_portion(host, link, request.more.number, selecting, reply)


def _next_portion(host: Host, link: PeerLink, number: int, selecting: Selecting, reply: pb.QueueReply) -> None:
    portion = _answer_portion(host, link, number, selecting, reply)
    host.tasks.start(portion, f"messages of queue {selecting.queue.options.name}")


async def _answer_portion(host: Host, link: PeerLink, number: int, selecting: Selecting, reply: pb.QueueReply) -> None:
    try:
        reply.MergeFrom(await selecting.portion(host))
    except Exception as fault:  # noqa: BLE001 - as when it is carried out at once
        name = selecting.queue.options.name
        reply.reason, reply.text = pb.OTHER, contained("choosing messages", fault, queue=name).text
    if not reply.more:
        link.selections.pop(number, None)
    link.outbox.reply(reply)


def _get(host: Host, link: PeerLink, request: pb.GetRequest, queue: Queue, reply: pb.QueueReply, now: int) -> None:
    entry = queue.get(link, now, settled=request.settled)
    if entry is not None:
        link.holds_of(queue)
        _encode_entry(entry, queue.features.acquired(entry), reply.message)
        if traced := host.journeys.taken(entry.message.uid, queue.options.queue_id, link):
            reply.message.traced.append(traced)
    reply.message_count = queue.ready_count


def _encode_entry(entry: Entry, acquired: int, batch: pb.DeliveryBatch) -> None:
    message, run = entry.message, DeliveryRun(0, 1, entry.attempts, acquired)
    encode(Columns([message.uid], [message.facts], [message.properties], [message.body], [run]), batch)


def _delete(host: Host, link: PeerLink, request: pb.QueueRequest, queue: Queue, reply: pb.QueueReply) -> None:
    asked = request.delete
    if asked.if_unused and len(queue.consumers):
        reply.reason, reply.text = pb.IN_USE, f"queue '{queue.options.name}' in use"
    elif asked.if_empty and queue.ready_count:
        reply.reason, reply.text = pb.NOT_EMPTY, f"queue '{queue.options.name}' not empty"
    else:
        host.registry.deleting.begin(SlotId(asked.queue_id))
        if asked.if_empty:
            host.registry.seal(queue)
        host.tasks.start(_delete_there(host, link, queue, reply), f"delete queue {queue.options.name}")
        return
    link.outbox.reply(reply)


def delete_unusable(host: Host, link: PeerLink, request: pb.QueueRequest) -> None:
    """Deletes a queue that cannot be served: it has nothing to count or to check."""
    reply = pb.QueueReply(id=request.id)
    host.tasks.start(_delete_definition(host, link, SlotId(request.delete.queue_id), reply), "delete an unusable queue")


async def _delete_there(host: Host, link: PeerLink, queue: Queue, reply: pb.QueueReply) -> None:
    reply.message_count = queue.ready_count
    await _delete_definition(host, link, queue.options.queue_id, reply)


async def _delete_definition(host: Host, link: PeerLink, queue_id: SlotId, reply: pb.QueueReply) -> None:
    definition = host.registry.definitions.get(queue_id)
    try:
        if definition is None:
            _is_gone(reply)
        else:
            await host.delete(definition)
    except NotFound:
        _is_gone(reply)
    except BrokerError as failure:
        reply.reason, reply.text, reply.message_count = pb.UNAVAILABLE, failure.text, 0
        host.registry.unseal(queue_id)
    finally:
        host.registry.deleting.over(queue_id)
    link.outbox.reply(reply)


def _is_gone(reply: pb.QueueReply) -> None:
    """Somebody else has deleted it: who asks now sees to it that every gateway has heard that."""
    reply.reason, reply.text = pb.UNKNOWN_QUEUE, "the queue is deleted already"


_Later = Callable[[Host, "PeerLink", pb.QueueRequest, Queue, pb.QueueReply], None]
_LATER: Final[Mapping[str, _Later]] = {"delete": _delete, "purge": _purge, "select": _select, "more": _more}
