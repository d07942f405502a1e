"""What becomes of traced messages, told by raw publishes: no instrumentation decides what is in their headers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import aio_pika
import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from services.common.partition import partition_of
from services.common.topology.slots import SlotName
from tests.support.interop_pika import fetch
from tests.support.interop_proxy import Proxy
from tests.support.span_files import Seen, names_of, one, wait_for
from tests.support.stack import Stack

PARENT = "00f067aa0ba902b7"


@pytest.fixture
def channel(plain: pika.BlockingConnection) -> BlockingChannel:
    return plain.channel()


@pytest.fixture
def trace() -> str:
    return secrets.token_hex(16)


def publish(channel: BlockingChannel, queue: str, trace: str, **properties: object) -> None:
    headers = {"traceparent": f"00-{trace}-{PARENT}-01"}
    channel.basic_publish("", queue, b"body", pika.BasicProperties(headers=headers, **properties))


def of_trace(spans: list[Seen], trace: str, start: str = "") -> list[Seen]:
    """The spans of a trace whose names begin so, by their time."""
    found = [span for span in spans if span.trace == trace and span.name.startswith(start)]
    return sorted(found, key=lambda span: (span.start_ns, span.end_ns))


def outcomes(spans: list[Seen], trace: str) -> list[str]:
    return [span.attributes["hopline.outcome"] for span in of_trace(spans, trace, "send")]


def is_whole(spans: list[Seen], trace: str) -> bool:
    """Whether a trace has its beginning and an attempt: they are of two processes, whichever writes first."""
    return bool(of_trace(spans, trace, "receive") and outcomes(spans, trace))


def test_redelivery(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """Each attempt is a span, numbered, with how it ended: all of one trace, children of the same receive."""
    channel.queue_declare(name)
    publish(channel, name, trace)
    for _ in range(2):
        while not (method := channel.basic_get(name)[0]):
            pass
        channel.basic_nack(method.delivery_tag, requeue=True)
    fetch(channel, name)
    found = wait_for(spans, lambda found: len(outcomes(found, trace)) == 3 and is_whole(found, trace))
    attempts = of_trace(found, trace, "send")
    assert outcomes(found, trace) == ["released", "released", "accepted"]
    assert [span.attributes["hopline.delivery.attempt"] for span in attempts] == [1, 2, 3]
    assert {span.parent for span in attempts} == {one(found, "receive amq.default", trace).span}


def test_dead_letter(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """A rejected message moves, and what it goes on as is queued and sent in the same trace, below the move."""
    dead = f"{name}.dead"
    channel.queue_declare(dead)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    channel.queue_declare(name, durable=True, arguments=arguments)
    publish(channel, name, trace, delivery_mode=2)
    while not (method := channel.basic_get(name)[0]):
        pass
    channel.basic_reject(method.delivery_tag, requeue=False)
    letter = fetch(channel, dead)
    stages = {"receive amq.default", f"move {name}", f"enqueue {dead}"}
    found = wait_for(spans, lambda found: len(outcomes(found, trace)) == 2 and stages <= names_of(found, trace))
    rejected, taken = one(found, f"send {name}", trace), one(found, f"send {dead}", trace)
    move, enqueue = one(found, f"move {name}", trace), one(found, f"enqueue {dead}", trace)
    assert outcomes(found, trace) == ["rejected", "accepted"]
    assert (move.parent, enqueue.parent, taken.parent) == (rejected.span, move.span, move.span)
    assert move.attributes["hopline.reason"] == "rejected"
    assert move.kind == 1
    assert letter.properties.headers["traceparent"] == f"00-{trace}-{PARENT}-01"
    assert len(of_trace(found, trace, "receive")) == 1


def test_expired(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """A message whose time is over moves to nowhere, or to where dead letters go."""
    channel.queue_declare(name, arguments={"x-message-ttl": 1})
    publish(channel, name, trace)
    # They come from two processes, in any order.
    found = wait_for(spans, lambda found: of_trace(found, trace, "move") and of_trace(found, trace, "receive"))
    move = one(found, f"move {name}", trace)
    assert move.attributes["hopline.reason"] == "ttl_expired"
    assert move.parent == one(found, "receive amq.default", trace).span


@pytest.mark.parametrize("what", ["drop-head", "purge", "delete"])
def test_dropped(channel: BlockingChannel, spans: Path, name: str, trace: str, what: str) -> None:
    """Each cause that takes a message out of its queue unread is the reason of a move."""
    channel.queue_declare(name, arguments={"x-max-length": 1})
    publish(channel, name, trace)
    if what == "drop-head":
        channel.basic_publish("", name, b"next")
    elif what == "purge":
        channel.queue_purge(name)
    else:
        channel.queue_delete(name)
    found = wait_for(spans, lambda found: of_trace(found, trace, "move"))
    reasons = {"drop-head": "maxlen", "purge": "purged", "delete": "queue_deleted"}
    assert one(found, f"move {name}", trace).attributes["hopline.reason"] == reasons[what]


def test_refused(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """A full queue's refusal is an error of `receive` and of `enqueue`."""
    channel.confirm_delivery()
    channel.queue_declare(name, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    publish(channel, name, secrets.token_hex(16))
    with pytest.raises(pika.exceptions.NackError):
        publish(channel, name, trace)
    found = wait_for(spans, lambda found: {"receive amq.default", f"enqueue {name}"} <= names_of(found, trace))
    receive, enqueue = one(found, "receive amq.default", trace), one(found, f"enqueue {name}", trace)
    assert receive.failed
    assert enqueue.failed
    assert receive.attributes["error.type"] == "overflow"
    assert [event["hopline.outcome"] for _, event in receive.events] == ["overflow"]


def test_unroutable(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """A message without a queue is received, and that is all."""
    publish(channel, name, trace)
    found = wait_for(spans, lambda found: of_trace(found, trace, "receive"))
    assert one(found, "receive amq.default", trace).attributes["hopline.outcome"] == "unroutable"


def test_fan_out(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """Each queue that a message goes to is an event of its receive, and has an enqueue and a send of its own."""
    channel.exchange_declare(name, "fanout", auto_delete=True)
    queues = [f"{name}-{number}" for number in range(3)]
    for queue in queues:
        channel.queue_declare(queue)
        channel.queue_bind(queue, name)
    headers = {"traceparent": f"00-{trace}-{PARENT}-01"}
    channel.basic_publish(name, "key", b"", pika.BasicProperties(headers=headers))
    for queue in queues:
        fetch(channel, queue)
    stages = {f"receive {name}", *(f"enqueue {queue}" for queue in queues)}
    found = wait_for(spans, lambda found: len(outcomes(found, trace)) == 3 and stages <= names_of(found, trace))
    receive = one(found, f"receive {name}", trace)
    assert sorted(event for event, _ in receive.events) == [f"{queue} enqueue" for queue in queues]
    for queue in queues:
        assert one(found, f"enqueue {queue}", trace).parent == receive.span
        assert one(found, f"send {queue}", trace).parent == receive.span


def test_settled_at_once(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """One acknowledgement for many is an operation of its own that is linked to every delivery."""
    channel.queue_declare(name)
    for _ in range(3):
        publish(channel, name, trace)
    while channel.queue_declare(name, passive=True).method.message_count < 3:
        pass
    tags = [channel.basic_get(name)[0].delivery_tag for _ in range(3)]
    channel.basic_ack(tags[-1], multiple=True)
    found = wait_for(
        spans, lambda found: names_of(found) >= {f"ack {name}"} and len(of_trace(found, trace, "send")) == 3
    )
    ack = one(found, f"ack {name}")
    assert sorted(ack.links) == sorted(span.span for span in of_trace(found, trace, "send"))
    assert (ack.kind, ack.attributes["messaging.batch.message_count"]) == (3, 3)
    assert ack.attributes["messaging.operation.type"] == "settle"


async def test_connection_lost(stack: Stack, channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """A consumer whose connection breaks has not settled: that is how its attempt ends, and the next follows."""
    channel.queue_declare(name)
    publish(channel, name, trace)
    async with Proxy.running(stack.address) as proxy:
        connection = await aio_pika.connect(proxy.address.url())
        queue = await (await connection.channel()).get_queue(name)
        assert await queue.get(timeout=10)
        proxy.cut()
        with suppress(aio_pika.exceptions.AMQPError, ConnectionError):
            await connection.close()
    await asyncio.to_thread(fetch, channel, name)
    found = wait_for(spans, lambda found: len(outcomes(found, trace)) == 2)
    assert outcomes(found, trace) == ["connection_lost", "accepted"]
    assert of_trace(found, trace, "send")[0].failed


@pytest.mark.parametrize("commits", [True, False])
def test_transaction(channel: BlockingChannel, spans: Path, name: str, trace: str, commits: bool) -> None:
    """What is published in a transaction is received until that is decided, and enqueued only by a commit."""
    channel.queue_declare(name, durable=True)
    channel.tx_select()
    publish(channel, name, trace, delivery_mode=2)
    (channel.tx_commit if commits else channel.tx_rollback)()
    found = wait_for(spans, lambda found: of_trace(found, trace, "receive"))
    receive = one(found, "receive amq.default", trace)
    assert receive.attributes["hopline.outcome"] == ("accepted" if commits else "rolled_back")
    if commits:
        found = wait_for(spans, lambda found: f"enqueue {name}" in names_of(found, trace))
        assert one(found, f"enqueue {name}", trace).parent == receive.span
    channel.queue_delete(name)


def test_no_ack(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """Without acknowledgements a delivery is accepted by being written."""
    channel.queue_declare(name)
    got: list[bytes] = []
    channel.basic_consume(name, lambda _channel, _method, _properties, body: got.append(body), auto_ack=True)
    publish(channel, name, trace)
    while not got:
        channel.connection.process_data_events(1)
    found = wait_for(spans, lambda found: {f"send {name}", f"enqueue {name}"} <= names_of(found, trace))
    assert outcomes(found, trace) == ["accepted"]
    assert one(found, f"enqueue {name}", trace).attributes["hopline.outcome"] == "accepted"


def test_no_exchange(channel: BlockingChannel, spans: Path, name: str, trace: str) -> None:
    """A publish that ends its channel is received, and that it failed is said."""
    headers = {"traceparent": f"00-{trace}-{PARENT}-01"}
    channel.basic_publish(name, "key", b"", pika.BasicProperties(headers=headers))
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare(name)
    found = wait_for(spans, lambda found: of_trace(found, trace, "receive"))
    receive = one(found, f"receive {name}", trace)
    assert receive.failed
    assert receive.attributes["error.type"] == "NotFound"


def test_moved(channel: BlockingChannel, spans: Path, name: str, trace: str, hopline: Callable[..., str]) -> None:
    """Traces go on when a queue gets another owner: of what waits, and of what a consumer holds meanwhile."""
    channel.queue_declare(name)
    partition = str(partition_of(SlotName("/", name), 64))
    waiting = secrets.token_hex(16)
    publish(channel, name, trace)
    while not (method := channel.basic_get(name)[0]):
        pass
    publish(channel, name, waiting)
    for owner in ("queue-1", "queue-2", "queue-1"):
        hopline("partitions", "move", partition, owner)
    channel.basic_ack(method.delivery_tag)
    fetch(channel, name)
    found = wait_for(spans, lambda found: all(is_whole(found, each) for each in (trace, waiting)))
    for each in (trace, waiting):
        assert outcomes(found, each) == ["accepted"]
        assert one(found, f"send {name}", each).parent == one(found, "receive amq.default", each).span
    hopline("partitions", "unpin", partition)
