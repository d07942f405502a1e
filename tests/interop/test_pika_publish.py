"""pika publishes: confirms, returns, exchanges of every type, transactions, large bodies, headers of every type."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

from tests.support.interop_pika import connected, fetch, is_empty

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress

PERSISTENT = pika.BasicProperties(delivery_mode=2)


def test_confirmed_publish_arrives(channel: BlockingChannel, name: str) -> None:
    """A confirmed persistent publish to a durable queue is in it, with its properties."""
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True)
    properties = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="utf-8",
        headers={"a": 1},
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        user_id="guest",
        app_id="app",
    )
    channel.basic_publish("", name, b"hello", properties, mandatory=True)
    message = fetch(channel, name)
    assert message.body == b"hello"
    assert message.properties.__dict__ == properties.__dict__
    assert (message.method.exchange, message.method.routing_key, message.method.redelivered) == ("", name, False)
    channel.queue_delete(name)


TEXTS = ("content_type", "content_encoding", "correlation_id", "reply_to", "message_id", "type", "app_id", "cluster_id")


def test_properties_of_any_bytes(channel: BlockingChannel, name: str) -> None:
    """They are bytes on the wire (4.2.5.3): each that is not UTF-8 arrives as it came, and so do the others with it."""
    channel.confirm_delivery()
    channel.queue_declare(name)
    for odd in TEXTS:
        properties = pika.BasicProperties(**dict.fromkeys(TEXTS, "text") | {odd: b"\xff\xfe"})
        channel.basic_publish("", name, b"hello", properties, mandatory=True)
        assert fetch(channel, name).properties.__dict__ == properties.__dict__
    channel.queue_delete(name)


def test_a_user_of_any_bytes(channel: BlockingChannel, name: str) -> None:
    """Is another user than this one, and refused as such."""
    channel.basic_publish("", name, b"hello", pika.BasicProperties(user_id=b"\xff\xfe"))
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.queue_declare(name)
    assert raised.value.reply_code == 406


def test_mandatory_without_route_is_returned(channel: BlockingChannel, name: str) -> None:
    """A mandatory publish that no queue gets comes back whole, with 312 NO_ROUTE, and is confirmed after that."""
    channel.confirm_delivery()
    with pytest.raises(UnroutableError) as raised:
        channel.basic_publish("amq.direct", name, b"nowhere", mandatory=True)
    [returned] = raised.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", name)
    assert returned.body == b"nowhere"


def test_publish_without_route_is_confirmed(channel: BlockingChannel, name: str) -> None:
    """A publish that is not mandatory and reaches no queue is dropped and confirmed."""
    channel.confirm_delivery()
    channel.basic_publish("amq.fanout", name, b"nowhere")


def test_full_queue_that_rejects_publishes_nacks(channel: BlockingChannel, name: str) -> None:
    """With x-overflow=reject-publish a message over the limit is nacked and not in the queue."""
    channel.confirm_delivery()
    channel.queue_declare(name, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.basic_publish("", name, b"first")
    with pytest.raises(NackError):
        channel.basic_publish("", name, b"second")
    assert fetch(channel, name).body == b"first"
    assert is_empty(channel, name)
    channel.queue_delete(name)


def test_topic_exchange(channel: BlockingChannel, name: str) -> None:
    """`*` stands for one word and `#` for any number; a queue gets one copy however many of its bindings match."""
    channel.confirm_delivery()
    channel.exchange_declare(name, "topic", auto_delete=True)
    patterns = {"one": ["a.*.c"], "any": ["a.#"], "both": ["a.#", "#.c"], "other": ["b.#"]}
    queues = {key: channel.queue_declare("", exclusive=True).method.queue for key in patterns}
    for key, bound in patterns.items():
        for pattern in bound:
            channel.queue_bind(queues[key], name, pattern)
    channel.basic_publish(name, "a.b.c", b"abc")
    channel.basic_publish(name, "a", b"a")
    counts = {key: channel.queue_declare(queue, passive=True).method.message_count for key, queue in queues.items()}
    assert counts == {"one": 1, "any": 2, "both": 2, "other": 0}


def test_headers_exchange(channel: BlockingChannel, name: str) -> None:
    """x-match decides whether all headers of a binding must agree, or any."""
    channel.confirm_delivery()
    channel.exchange_declare(name, "headers", auto_delete=True)
    every, some = (channel.queue_declare("", exclusive=True).method.queue for _ in range(2))
    channel.queue_bind(every, name, arguments={"x-match": "all", "colour": "red", "size": 3})
    channel.queue_bind(some, name, arguments={"x-match": "any", "colour": "red", "size": 3})
    channel.basic_publish(name, "", b"both", pika.BasicProperties(headers={"colour": "red", "size": 3, "more": True}))
    channel.basic_publish(name, "", b"one", pika.BasicProperties(headers={"colour": "red", "size": 4}))
    channel.basic_publish(name, "", b"none", pika.BasicProperties(headers={"colour": "blue"}))
    assert fetch(channel, every).body == b"both"
    assert is_empty(channel, every)
    assert [fetch(channel, some).body, fetch(channel, some).body] == [b"both", b"one"]
    assert is_empty(channel, some)


def test_exchange_to_exchange_and_unbind(channel: BlockingChannel, name: str) -> None:
    """A message follows bindings between exchanges until they are removed."""
    channel.confirm_delivery()
    channel.exchange_declare(f"{name}-from", "direct", auto_delete=True)
    channel.exchange_declare(f"{name}-to", "fanout", auto_delete=True)
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, f"{name}-to")
    channel.exchange_bind(f"{name}-to", f"{name}-from", "key")
    channel.basic_publish(f"{name}-from", "key", b"through")
    assert fetch(channel, queue).body == b"through"
    channel.exchange_unbind(f"{name}-to", f"{name}-from", "key")
    channel.exchange_declare(f"{name}-from", "direct", auto_delete=True)
    channel.basic_publish(f"{name}-from", "key", b"gone")
    assert is_empty(channel, queue)
    channel.exchange_delete(f"{name}-from")


def test_alternate_exchange(channel: BlockingChannel, name: str) -> None:
    """What an exchange cannot route goes to its alternate exchange, and is then not returned."""
    channel.confirm_delivery()
    channel.exchange_declare(f"{name}-rest", "fanout", auto_delete=True)
    channel.exchange_declare(name, "direct", arguments={"alternate-exchange": f"{name}-rest"})
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, f"{name}-rest")
    channel.basic_publish(name, "unknown", b"rest", mandatory=True)
    message = fetch(channel, queue)
    assert (message.body, message.method.exchange, message.method.routing_key) == (b"rest", name, "unknown")
    channel.exchange_delete(name)


def test_transaction_commit_and_rollback(connection: pika.BlockingConnection, name: str) -> None:
    """Publishes and acks of a transaction take effect at commit, all of them, and none after a rollback."""
    channel, other = connection.channel(), connection.channel()
    channel.queue_declare(name)
    channel.tx_select()
    channel.basic_publish("", name, b"rolled back", PERSISTENT)
    channel.tx_rollback()
    for number in range(3):
        channel.basic_publish("", name, str(number).encode(), PERSISTENT)
    assert other.queue_declare(name, passive=True).method.message_count == 0
    channel.tx_commit()
    assert other.queue_declare(name, passive=True).method.message_count == 3
    first = channel.basic_get(name)
    channel.basic_ack(first[0].delivery_tag)
    channel.tx_rollback()
    channel.basic_ack(first[0].delivery_tag)
    channel.tx_commit()
    channel.close()
    assert [fetch(other, name).body for _ in range(2)] == [b"1", b"2"]
    other.queue_delete(name)


@pytest.mark.parametrize("size", [0, 1, 131064, 131065, 1 << 20, 16 << 20])
def test_bodies_of_any_size(channel: BlockingChannel, name: str, size: int) -> None:
    """A body arrives as it was sent, whether empty, as large as a frame, or 16 MiB, which is the most."""
    channel.confirm_delivery()
    channel.queue_declare(name)
    body = os.urandom(size)
    channel.basic_publish("", name, body, PERSISTENT)
    assert fetch(channel, name).body == body
    channel.queue_delete(name)


def test_a_body_that_is_too_large(broker: BrokerAddress, name: str) -> None:
    """More than 16 MiB ends the channel with 406, and the connection goes on."""
    with connected(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="406"):
            channel.basic_publish("", name, bytes((16 << 20) + 1), PERSISTENT)
        assert connection.channel().queue_delete(name)


def test_frames_as_small_as_the_client_wants(broker: BrokerAddress, name: str) -> None:
    """The broker keeps to the smallest frame-max that a client may ask for."""
    with connected(broker, frame_max=4096) as connection:
        channel = connection.channel()
        channel.queue_declare(name)
        body = os.urandom(50_000)
        channel.basic_publish("", name, body)
        assert fetch(channel, name).body == body
        channel.queue_delete(name)


HEADERS: dict[str, Any] = {
    "text": "wörter",
    "bytes": b"\x00\xff",
    "true": True,
    "false": False,
    "small": -5,
    "negative": -70_000,
    "large": 1 << 40,
    "decimal": Decimal("12.34"),
    "time": datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
    "nothing": None,
    "list": [1, "two", [3, None], {"four": 4}],
    "table": {"nested": {"deeper": "value"}, "number": 1},
    "empty table": {},
    "empty list": [],
}


def test_headers_of_every_type(channel: BlockingChannel, name: str) -> None:
    """Headers of every field type arrive with their types."""
    channel.confirm_delivery()
    channel.queue_declare(name)
    channel.basic_publish("", name, b"", pika.BasicProperties(headers=HEADERS))
    assert fetch(channel, name).properties.headers == HEADERS
    channel.queue_delete(name)


def test_headers_of_every_type_survive_dead_lettering(channel: BlockingChannel, name: str) -> None:
    """Headers are kept, types and all, when the broker adds its own."""
    channel.queue_declare(f"{name}-dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    channel.queue_declare(name, arguments=arguments)
    channel.basic_publish("", name, b"", pika.BasicProperties(headers=HEADERS))
    method, _, _ = next(channel.consume(name, inactivity_timeout=10))
    channel.basic_reject(method.delivery_tag, requeue=False)
    channel.cancel()
    headers = fetch(channel, f"{name}-dead").properties.headers
    assert {key: headers.get(key) for key in HEADERS} == HEADERS
    for queue in (name, f"{name}-dead"):
        channel.queue_delete(queue)
