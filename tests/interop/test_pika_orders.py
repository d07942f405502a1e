"""pika declares queues by Broker-J's names: sorted ones, and ones that keep the last value of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.support.interop_pika import fetch, is_empty

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel


def publish(channel: BlockingChannel, queue: str, header: str, *values: str) -> None:
    channel.confirm_delivery()
    for value in values:
        properties = pika.BasicProperties(headers={header: value}, delivery_mode=2)
        channel.basic_publish("", queue, value.encode(), properties)


def test_sorted(channel: BlockingChannel, name: str) -> None:
    """What waits is handed out by the text of a header."""
    channel.queue_declare(name, durable=True, arguments={"qpid.queue_sort_key": "price"})
    publish(channel, name, "price", "c", "a", "b")
    assert [fetch(channel, name).body for _ in range(3)] == [b"a", b"b", b"c"]
    channel.queue_delete(name)


def test_last_value(channel: BlockingChannel, name: str) -> None:
    """Of the messages with one key the last one is there, and no other."""
    channel.queue_declare(name, durable=True, arguments={"qpid.last_value_queue_key": "symbol"})
    publish(channel, name, "symbol", "a", "b", "a")
    assert channel.queue_declare(name, passive=True).method.message_count == 2
    assert [fetch(channel, name).body for _ in range(2)] == [b"b", b"a"]
    assert is_empty(channel, name)
    channel.queue_delete(name)


def test_both(channel: BlockingChannel, name: str) -> None:
    """A queue cannot be both: precondition failed (406), which names the argument."""
    with pytest.raises(ChannelClosedByBroker, match=r"qpid\.last_value_queue_key") as error:
        channel.queue_declare(name, arguments={"sortKey": "a", "lvqKey": "b"})
    assert error.value.reply_code == 406


def test_attempts_are_told(channel: BlockingChannel, name: str) -> None:
    """Of a queue that limits them, by headers; then the message is given up."""
    channel.queue_declare(name, durable=True, arguments={"x-delivery-limit": 2})
    channel.confirm_delivery()
    channel.basic_publish("", name, b"x", pika.BasicProperties(headers={"mine": 1}))
    told = []
    for method, properties, _ in channel.consume(name, inactivity_timeout=10):
        assert method, told
        told.append(properties.headers)
        channel.basic_nack(method.delivery_tag, requeue=True)
        if len(told) == 3:
            break
    channel.cancel()
    assert told == [{"mine": 1}, *({"mine": 1, "x-acquired-count": n, "x-delivery-count": n} for n in (1, 2))]
    assert is_empty(channel, name)
    channel.queue_delete(name)
