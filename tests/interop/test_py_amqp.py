"""py-amqp and kombu, the libraries below Celery, used directly."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import amqp
import kombu
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.interop_address import BrokerAddress

SECONDS = 10


@pytest.fixture
def amqp_connection(broker: BrokerAddress) -> Iterator[amqp.Connection]:
    """A connection with confirms on all its channels."""
    with amqp.Connection(f"{broker.host}:{broker.port}", confirm_publish=True) as connection:
        yield connection


def test_confirmed_publish_and_get(amqp_connection: amqp.Connection, name: str) -> None:
    """A publish that waits for its confirm is in the queue."""
    channel = amqp_connection.channel()
    channel.queue_declare(name, exclusive=True)
    headers: dict[str, Any] = {"float": 1.5, "list": [1, 2.5, "x"], "table": {"yes": True}}
    channel.basic_publish(amqp.Message("text", application_headers=headers, delivery_mode=2), routing_key=name)
    message = channel.basic_get(name)
    assert (message.body, message.headers) == ("text", headers)
    channel.basic_ack(message.delivery_tag)


def test_immediate(amqp_connection: amqp.Connection, name: str) -> None:
    """An immediate message comes back with 313 while there is no consumer, and is delivered when there is one."""
    channel = amqp_connection.channel()
    channel.queue_declare(name, exclusive=True)
    returned: list[tuple[int, str, str]] = []
    channel.events["basic_return"].add(
        lambda failure, _exchange, key, back: returned.append((failure.reply_code, key, back.body))
    )
    channel.basic_publish(amqp.Message("nobody"), routing_key=name, immediate=True)
    assert returned == [(313, name, "nobody")]
    received: list[str] = []
    channel.basic_consume(name, callback=lambda message: received.append(message.body), no_ack=True)
    channel.basic_publish(amqp.Message("somebody"), routing_key=name, immediate=True)
    while not received:
        amqp_connection.drain_events(timeout=SECONDS)
    assert (received, len(returned)) == (["somebody"], 1)


def test_login_with_amqplain(broker: BrokerAddress) -> None:
    """The mechanism AMQPLAIN logs in as PLAIN does, and refuses a wrong password with 403."""
    with amqp.Connection(f"{broker.host}:{broker.port}", login_method="AMQPLAIN") as connection:
        assert connection.connected
    wrong = amqp.Connection(f"{broker.host}:{broker.port}", login_method="AMQPLAIN", password="no")
    with pytest.raises(amqp.AccessRefused):
        wrong.connect()


def test_unknown_virtual_host(broker: BrokerAddress) -> None:
    """An unknown virtual host is refused with 530."""
    connection = amqp.Connection(f"{broker.host}:{broker.port}", virtual_host="no-such-host")
    with pytest.raises(amqp.NotAllowed):
        connection.connect()


def test_missing_queue_raises_not_found(amqp_connection: amqp.Connection, name: str) -> None:
    """404 arrives as the library's own NotFound, and another channel works."""
    with pytest.raises(amqp.NotFound):
        amqp_connection.channel().queue_declare(name, passive=True)
    assert amqp_connection.channel().queue_declare(exclusive=True).queue


def test_kombu_producer_and_consumer(broker: BrokerAddress, name: str) -> None:
    """kombu declares what a consumer needs, compresses, serialises, and acknowledges."""
    exchange = kombu.Exchange(name, "topic", durable=False, auto_delete=True)
    queue = kombu.Queue(name, exchange, routing_key="task.#", durable=False, auto_delete=True, max_priority=None)
    received: list[Any] = []

    def on_message(body: Any, message: kombu.Message) -> None:
        received.append(body)
        message.ack()

    with kombu.Connection(broker.url()) as connection, connection.Consumer(queue, callbacks=[on_message]) as consumer:
        consumer.qos(prefetch_count=2)
        producer = connection.Producer(serializer="json")
        for number in range(10):
            producer.publish({"n": number}, exchange=exchange, routing_key="task.a", compression="gzip")
        while len(received) < 10:
            connection.drain_events(timeout=SECONDS)
    assert received == [{"n": number} for number in range(10)]


def test_kombu_simple_queue_reconnects(broker: BrokerAddress, name: str) -> None:
    """kombu's ensure publishes through a broken socket by connecting again."""
    with kombu.Connection(broker.url()) as connection:
        producer = connection.Producer()
        queue = kombu.Queue(name, durable=True)
        producer.publish("before", routing_key=name, declare=[queue])
        connection.connection.transport.sock.shutdown(socket.SHUT_RDWR)
        producer.publish("after", routing_key=name, declare=[queue], retry=True, retry_policy={"max_retries": 5})
        with connection.clone() as other:
            bound = queue(other.default_channel)
            bodies = [bound.get(no_ack=True).payload for _ in range(2)]
            bound.delete()
    assert bodies == ["before", "after"]
