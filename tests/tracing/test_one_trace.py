from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import aio_pika
import pika

from tests.support.interop_pika import connected
from tests.support.span_files import CONSUMER, INTERNAL, PRODUCER, Seen, one, wait_for
from tests.support.stack import Stack
from tests.support.traced_application import Application


def check_journey(broker: list[Seen], queue: str, published: Seen, consumed: Seen) -> None:
    """One trace from the publishing function to the consuming one, shaped as the conventions say."""
    trace = published.trace
    receive = one(broker, "receive amq.default", trace)
    enqueue, send = one(broker, f"enqueue {queue}", trace), one(broker, f"send {queue}", trace)
    [commit] = [span for span in broker if span.name == "commit" and receive.span in span.links]
    assert consumed.trace == trace
    assert (receive.kind, enqueue.kind, send.kind, commit.kind) == (CONSUMER, INTERNAL, PRODUCER, INTERNAL)
    assert (receive.parent, enqueue.parent, send.parent) == (published.span, receive.span, receive.span)
    # The creation context reached the consumer as it was: a context of the broker's is never put in its place.
    assert consumed.parent == published.span
    assert commit.trace != trace
    assert commit.parent == ""
    assert [span.service for span in (receive, enqueue, send, commit)] == [
        "hopline-gateway", "hopline-queue", "hopline-gateway", "hopline-store",
    ]  # fmt: skip
    [(event, target)] = receive.events
    assert (event, target["hopline.outcome"], target["hopline.queue"]) == (f"{queue} enqueue", "accepted", queue)
    assert target["messaging.destination.partition.id"] == enqueue.attributes["messaging.destination.partition.id"]
    assert target["hopline.partition.epoch"] == enqueue.attributes["hopline.partition.epoch"] > 0
    assert send.attributes["hopline.outcome"] == "accepted"
    assert [event for event, _ in send.events] == ["written", "settle"]
    assert len({span.attributes["hopline.message.uid"] for span in (receive, enqueue, send)}) == 1
    assert receive.attributes["messaging.system"] == "hopline"
    assert receive.attributes["messaging.message.id"] == "the id"
    assert published.start_ns <= receive.start_ns <= enqueue.start_ns <= send.start_ns <= send.end_ns


def whole(queue: str) -> Callable[[list[Seen]], bool]:
    """Every span of a message in `queue` is written."""

    def check(spans: list[Seen]) -> bool:
        traces = {span.trace for span in spans if span.name == f"send {queue}"}
        received = {span.span for span in spans if span.trace in traces and span.name == "receive amq.default"}
        committed = {link for span in spans if span.name == "commit" for link in span.links}
        return bool(received & committed) and f"enqueue {queue}" in {span.name for span in spans}

    return check


def test_pika(stack: Stack, spans: Path, pika_application: Application, name: str) -> None:
    """Under OpenTelemetry's instrumentation of pika, the application's spans and the broker's are one trace."""
    received: list[pika.BasicProperties] = []

    def consume(channel: object, method: object, properties: pika.BasicProperties, _body: bytes) -> None:
        with pika_application.tracer.start_as_current_span("work"):
            received.append(properties)
        channel.basic_ack(method.delivery_tag)

    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.queue_declare(name, durable=True)
        channel.basic_consume(name, consume)
        with pika_application.tracer.start_as_current_span("publish"):
            properties = pika.BasicProperties(delivery_mode=2, message_id="the id", headers={"mine": 1})
            channel.basic_publish("", name, b"hello", properties)
        while not received:
            connection.process_data_events(1)
        connection.process_data_events(0.05)
    application = pika_application.spans()
    work = one(application, "work")
    broker = wait_for(spans, whole(name))
    consumed = one(application, f"{name} receive")
    published = next(span for span in application if span.span == consumed.parent)
    check_journey(broker, name, published, consumed)
    assert work.trace == one(application, "publish").trace == published.trace
    assert properties.headers == received[0].headers
    assert published.trace in received[0].headers["traceparent"]


async def test_aio_pika(stack: Stack, spans: Path, aio_pika_application: Application, name: str) -> None:
    """The same under the instrumentation of aio-pika."""
    connection = await aio_pika.connect(stack.address.url())
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(name, durable=True)
        with aio_pika_application.tracer.start_as_current_span("publish"):
            message = aio_pika.Message(b"hello", message_id="the id", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await channel.default_exchange.publish(message, name)
        done = []

        async def consume(incoming: aio_pika.abc.AbstractIncomingMessage) -> None:
            async with incoming.process():
                done.append(incoming.headers)

        await queue.consume(consume)
        while not done:
            await asyncio.sleep(0.01)
    broker = wait_for(spans, whole(name))
    application = aio_pika_application.spans()
    consumed = one(application, f"{name} receive")
    published = next(span for span in application if span.span == consumed.parent)
    assert published.trace == one(application, "publish").trace
    check_journey(broker, name, published, consumed)


def test_router(stack: Stack, spans: Path, pika_application: Application, name: str) -> None:
    """No router is asked, not about the first message of a kind either: the gateway knows the bindings."""
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.queue_declare(name)
        channel.confirm_delivery()
        for _ in range(2):
            channel.basic_publish("", name, b"")
        channel.basic_get(name, auto_ack=True)

    def received(found: list[Seen]) -> list[Seen]:
        mine = [span for span in found if span.attributes.get("messaging.rabbitmq.destination.routing_key") == name]
        return sorted(mine, key=lambda span: span.start_ns)

    broker = wait_for(spans, lambda found: len(received(found)) == 2)
    first, second = received(broker)
    assert not [span for span in broker if span.trace in {first.trace, second.trace} and "Route" in span.name]
    assert (first.attributes["hopline.route.cached"], second.attributes["hopline.route.cached"]) == (True, True)
