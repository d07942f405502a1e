from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from services.common.ledger.recorder import OFF
from services.common.message.columns import put
from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext, new_root
from services.common.telemetry.span import Span
from services.common.telemetry.tracer import Tracer
from services.queue.journal.content import Source
from services.queue.machine.columns import Columns
from services.queue.machine.consumers import Consumer
from services.queue.machine.deliveries import Deliveries
from services.queue.machine.message import Interned
from services.queue.machine.options import QueueOptions
from services.queue.observe import journeys as module
from services.queue.observe.journeys import Journeys
from services.queue.observe.traced_batch import TracedBatch
from services.queue.observe.traced_record import TracedRecord
from services.rpc import queue_pb2 as pb
from services.rpc.router_pb2 import QueueDefinition
from tests.support.messages import PROPERTIES, facts

QUEUE = QueueDefinition(id=7, name="q", virtual_host="/", partition=3)
OPTIONS = QueueOptions(7, "/", "q", 3)
UID = 42


class Kept(Tracer):
    """Keeps its spans."""

    def __init__(self) -> None:
        super().__init__()
        self.on = True
        self.spans: list[Span] = []

    def end(self, span: Span, end_ns: int = 0) -> None:
        super().end(span, end_ns)
        self.spans.append(span)


@pytest.fixture
def tracer() -> Kept:
    return Kept()


@pytest.fixture
def journeys(tracer: Kept) -> Journeys:
    return Journeys(tracer, link_after=1000.0)


@pytest.fixture
def record(journeys: Journeys) -> TracedRecord:
    return TracedRecord(OFF, OPTIONS, 5, journeys)


@pytest.fixture
def consumer() -> Consumer:
    link = SimpleNamespace(deliveries=Deliveries(lambda: None), broken=False)
    return Consumer(11, link, tag="tag")


def test_costs_nothing(record: TracedRecord, journeys: Journeys) -> None:
    """While no message is traced, neither the ledger's record nor any other part has work to do."""
    assert not record.on
    record.enqueued(range(10))
    record.settled(range(10))
    journeys.arrived(UID, QUEUE, new_root())
    assert record.on
    journeys.gone(UID, 7)
    assert not record.on


def test_accepted(journeys: Journeys, record: TracedRecord, consumer: Consumer, tracer: Kept) -> None:
    """Each attempt has an identity that its gateway is told; the last word of the consumer ends the journey."""
    parent = new_root()
    journeys.arrived(UID, QUEUE, parent)
    record.enqueued([1, UID, 50])
    record.delivered(record.place, range(40, 50), consumer)
    record.requeued([UID], "released")
    record.delivered(record.place, [UID], consumer)
    record.requeued([UID], "not_sent")
    record.delivered(record.place, [UID], consumer)
    attempts = consumer.link.deliveries.traced
    assert [(each.uid, each.consumer, each.attempt) for each in attempts] == [(UID, 11, n) for n in (1, 2, 2)]
    contexts = [SpanContext.from_bytes(each.context) for each in attempts]
    assert len({context.span_id for context in contexts}) == 3
    assert {context.trace_id for context in contexts} == {parent.trace_id}
    assert {SpanContext.from_bytes(each.parent).span_id for each in attempts} == {parent.span_id}
    record.settled([UID])
    assert not journeys.live
    [enqueue] = tracer.spans
    assert (enqueue.name, enqueue.parent, enqueue.attributes[c.EPOCH]) == ("enqueue q", parent, 5)


def test_gateway_lost(journeys: Journeys, record: TracedRecord, consumer: Consumer, tracer: Kept) -> None:
    """The span of an attempt is made here when the gateway that would have made it is gone."""
    journeys.arrived(UID, QUEUE, new_root())
    record.enqueued([UID])
    record.delivered(record.place, [UID], consumer)
    consumer.link.broken = True
    record.requeued([UID], "consumer_gone")
    [send] = tracer.spans
    [told] = consumer.link.deliveries.traced
    assert send.context.span_id == SpanContext.from_bytes(told.context).span_id
    assert (send.name, send.attributes[c.OUTCOME], send.failed) == ("send q", "gateway_lost", True)


def test_dead_letter(journeys: Journeys, record: TracedRecord, tracer: Kept) -> None:
    """Every try to send a dead letter on has the same context; its span ends when it has arrived."""
    journeys.arrived(UID, QUEUE, new_root())
    record.enqueued([UID])
    record.settled([UID], "rejected")
    contexts = {journeys.moving(UID, 7, "expired", "dlx", 1000) for _ in range(3)}
    assert len(contexts) == 1
    journeys.gone(UID, 7)
    move = tracer.spans[-1]
    assert {move.context.to_bytes()} == contexts
    assert (move.name, move.attributes[c.REASON], move.attributes[c.TARGET]) == ("move q", "ttl_expired", "dlx")
    assert journeys.moving(UID, 7, "expired", "dlx", 1000) is None


def test_refused(journeys: Journeys, record: TracedRecord, tracer: Kept) -> None:
    """What never came in does not move out."""
    journeys.arrived(UID, QUEUE, new_root())
    record.dropped([UID], "maxlen")
    assert [(span.name, span.failed) for span in tracer.spans] == [("enqueue q", True)]
    assert not journeys.live


def test_browsed(journeys: Journeys, record: TracedRecord, consumer: Consumer) -> None:
    """For a browser there is no attempt of delivery."""
    consumer.browse = True
    journeys.arrived(UID, QUEUE, new_root())
    record.delivered(record.place, [UID], consumer)
    assert not consumer.link.deliveries.traced


def test_sent_again(journeys: Journeys) -> None:
    """A message that comes a second time goes on as what it is, and other queues' copies are their own."""
    journeys.arrived(UID, QUEUE, new_root())
    copy = journeys.live[UID][7]
    journeys.arrived(UID, QUEUE, new_root())
    journeys.arrived(UID, QueueDefinition(id=8, name="r"), new_root())
    assert journeys.live[UID][7] is copy
    journeys.forget([7])
    assert list(journeys.live[UID]) == [8]


def test_handed_over(journeys: Journeys, tracer: Kept) -> None:
    """The next owner of a partition gets the context that the message came with."""
    parent = new_root()
    journeys.arrived(UID, QUEUE, parent)
    context = journeys.context_of(UID)
    assert context == parent.to_bytes()
    assert journeys.context_of(1) is None
    successor = Journeys(tracer)
    successor.recovered(UID, QUEUE, context, 1000, 2)
    copy = successor.live[UID][7]
    assert (copy.attempts, copy.parent.span_id, copy.enqueue) == (2, parent.span_id, None)


def test_bounded(journeys: Journeys, tracer: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many traced messages under way, others are followed no further, and counted."""
    monkeypatch.setattr(module, "_AT_MOST", 2)
    for uid in range(5):
        journeys.arrived(uid, QUEUE, new_root())
    assert len(journeys.live) == 2
    assert tracer.untraced == 3


@pytest.mark.parametrize("refused", [True, False])
def test_sent_again_when_it_was_done_with(
    journeys: Journeys, record: TracedRecord, tracer: Kept, *, refused: bool
) -> None:
    """A traced message that was taken and consumed comes again: nothing of it stays when its batch is done."""
    batch = pb.PublishBatch(sequence=1, uids=[UID, UID + 1], bodies=[b"1", b"2"], time_ms=1)
    put(batch, [facts()] * 2, [PROPERTIES] * 2)
    batch.queues.add(queue_id=7, first=0, count=2)
    for index in range(2):
        batch.traced.add(index=index, context=new_root().to_bytes())
    host: Any = SimpleNamespace(journeys=journeys, registry=SimpleNamespace(definitions={7: QUEUE}))
    traced = TracedBatch(host, Source(b"", batch, Columns(batch, list(batch.bodies), Interned())))
    if refused:  # by a full queue that dead-letters it, of which the journey has to hear yet
        traced.refuse([0], 7, pb.OVERFLOW)
    record.enqueued([UID + 1])
    traced.done()
    assert list(journeys.live) == ([UID, UID + 1] if refused else [UID + 1])
    assert len(tracer.spans) == 2
