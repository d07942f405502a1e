"""How much a queue costs by itself: runs of 500 messages in, deliveries out, settlements in. No process, no wire."""

from __future__ import annotations

import time
import tracemalloc
from itertools import count

from services.common.message.columns import put
from services.common.message.facts import Facts
from services.common.topology.slots import SlotId
from services.queue.machine.arrival import Arrival
from services.queue.machine.columns import Columns, decoded
from services.queue.machine.consumers import Consumer
from services.queue.machine.context import QueueContext
from services.queue.machine.deliveries import Deliveries
from services.queue.machine.journal_draft import ContentDraft, PartitionDraft
from services.queue.machine.message import Interned, MemoryAccount
from services.queue.machine.options import QueueOptions
from services.queue.machine.overflow.drop_head import DropHead
from services.queue.machine.queue import Queue
from services.queue.machine.types.classic import classic
from services.rpc import queue_pb2 as pb

_RUN, _SIZE, _ROUNDS = 500, 256, 400
_PROPERTIES = b"\x00\x00"
_FACTS = Facts("/", "", "q", "amqp-0-9")
_PLENTY = 1 << 40
_WAITING = 16_000


def _nothing() -> None: ...


class _Link:
    origin = 0
    broken = over = False

    def __init__(self) -> None:
        self.deliveries = Deliveries(_nothing)

    def activated(self, consumer: Consumer) -> None: ...

    def ended(self, consumer: Consumer, reason: pb.Reason.ValueType) -> None: ...


def _queue() -> Queue:
    context = QueueContext(MemoryAccount(), PartitionDraft(_nothing, count(1).__next__), _nothing)
    return Queue(classic, QueueOptions(SlotId(1), "/", "q", 0), context, DropHead(), 0)


def _batches(count: int) -> list[bytes]:
    """As they come over the wire, so that decoding is part of the measurement."""
    return [_batch(number).SerializeToString() for number in range(count)]


def _batch(number: int) -> pb.PublishBatch:
    uids = range(number * _RUN, number * _RUN + _RUN)
    batch = pb.PublishBatch(sequence=number + 1, uids=uids, bodies=[bytes(_SIZE)] * _RUN)
    put(batch, [_FACTS] * _RUN, [_PROPERTIES] * _RUN)
    return batch


def _arrival(raw: bytes, interned: Interned) -> Arrival:
    columns = Columns(*decoded(raw), interned)
    return Arrival(columns, range(_RUN), 0, ContentDraft(lambda: 0))


def _report(what: str, seconds: float, messages: int) -> None:
    print(f"{what:<44} {messages / seconds:>12,.0f}/s  {seconds / messages * 1e6:6.2f} µs")


def delivered_at_once(*, settled: bool) -> None:
    """One consumer with credit enough; settled by being sent, or by an acknowledgement of each run."""
    queue, link, interned = _queue(), _Link(), Interned()
    queue.attach(Consumer(1, link, settled=settled, messages=_PLENTY, size=_PLENTY), (), 0, again=False)
    batches = _batches(_ROUNDS)
    begin = time.perf_counter()
    for raw in batches:
        queue.publish(_arrival(raw, interned), 0)
        uids = link.deliveries.uids
        link.deliveries.reset()
        if not settled:
            queue.settle(pb.ACCEPT, uids, 0)
    _report(
        f"delivered at once, {'no-ack' if settled else 'acknowledged'}", time.perf_counter() - begin, _ROUNDS * _RUN
    )


def by_the_list_settled() -> None:
    """A queue that is never empty, since its consumer has credit for what came before; settled by being sent."""
    queue, link, interned = _queue(), _Link(), Interned()
    consumer = Consumer(1, link, settled=True, size=_PLENTY)
    queue.attach(consumer, (), 0, again=False)
    batches = _batches(_ROUNDS)
    begin = time.perf_counter()
    for raw in batches:
        queue.publish(_arrival(raw, interned), 0)
        if queue.ready_count > _WAITING:
            queue.credit(consumer, _WAITING // 2, 0, 0)
            link.deliveries.reset()
    queue.credit(consumer, _PLENTY, 0, 0)
    _report("waiting, then delivered, no-ack", time.perf_counter() - begin, _ROUNDS * _RUN)


def by_the_list() -> None:
    """Everything waits first; then a consumer with credit for 100 at a time takes and acknowledges it."""
    queue, link, interned = _queue(), _Link(), Interned()
    batches = _batches(_ROUNDS)
    begin = time.perf_counter()
    for raw in batches:
        queue.publish(_arrival(raw, interned), 0)
    consumer = Consumer(1, link, size=_PLENTY)
    queue.attach(consumer, (), 0, again=False)
    while queue.ready_count:
        queue.credit(consumer, 100, 0, 0)
        uids = link.deliveries.uids
        link.deliveries.reset()
        queue.settle(pb.ACCEPT, uids, 0)
    _report("waiting, then delivered and acknowledged", time.perf_counter() - begin, _ROUNDS * _RUN)


def memory() -> None:
    """Bytes for each message that waits."""
    interned = Interned()
    batches = _batches(_ROUNDS)
    tracemalloc.start()
    queue = _queue()
    for raw in batches:
        queue.publish(_arrival(raw, interned), 0)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{'memory of a waiting message':<44} {used / queue.ready_count:>12,.0f} bytes with its body of {_SIZE}")


if __name__ == "__main__":
    delivered_at_once(settled=True)
    by_the_list_settled()
    delivered_at_once(settled=False)
    by_the_list()
    memory()
