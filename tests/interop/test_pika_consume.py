"""pika consumes: prefetch, redelivery, cancellation, priorities of consumers, queues that go with their users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.support.interop_pika import connect, connected, fetch, is_empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress


def run_until(connection: pika.BlockingConnection, condition: Callable[[], object], rounds: int = 100) -> None:
    """Handles what arrives until `condition()` holds, 10 seconds at most."""
    for _ in range(rounds):
        if condition():
            return
        connection.process_data_events(time_limit=0.1)
    raise AssertionError("what was waited for did not happen")


def collect(channel: BlockingChannel, queue: str, into: list[Any], **options: Any) -> str:
    """Starts a consumer that appends (delivery tag, body) to `into`."""
    return channel.basic_consume(
        queue, lambda _channel, method, _properties, body: into.append((method.delivery_tag, body)), **options
    )


def test_prefetch_limits_what_is_unacknowledged(connection: pika.BlockingConnection, name: str) -> None:
    """A consumer with prefetch 3 gets three messages, and as many more as it acknowledges."""
    channel = connection.channel()
    channel.queue_declare(name)
    for number in range(10):
        channel.basic_publish("", name, str(number).encode())
    channel.basic_qos(prefetch_count=3)
    received: list[Any] = []
    collect(channel, name, received)
    run_until(connection, lambda: len(received) == 3)
    connection.process_data_events(time_limit=0.3)
    assert len(received) == 3
    channel.basic_ack(received[1][0], multiple=True)
    run_until(connection, lambda: len(received) == 5)
    connection.process_data_events(time_limit=0.3)
    assert [body for _, body in received] == [b"0", b"1", b"2", b"3", b"4"]
    channel.queue_delete(name)


def test_global_prefetch_is_shared_by_a_channel(connection: pika.BlockingConnection, name: str) -> None:
    """With global_qos all consumers of the channel together have at most so many messages unacknowledged."""
    channel = connection.channel()
    channel.queue_declare(name)
    for number in range(10):
        channel.basic_publish("", name, str(number).encode())
    channel.basic_qos(prefetch_count=4, global_qos=True)
    received: list[Any] = []
    collect(channel, name, received)
    collect(channel, name, received)
    run_until(connection, lambda: len(received) == 4)
    connection.process_data_events(time_limit=0.3)
    assert len(received) == 4
    channel.queue_delete(name)


def test_round_robin_among_consumers(connection: pika.BlockingConnection, name: str) -> None:
    """Consumers of one priority with prefetch 1 each have one of the first messages."""
    channels = [connection.channel() for _ in range(3)]
    channels[0].queue_declare(name)
    received: list[list[Any]] = [[], [], []]
    for channel, into in zip(channels, received, strict=True):
        channel.basic_qos(prefetch_count=1)
        collect(channel, name, into)
    for number in range(3):
        channels[0].basic_publish("", name, str(number).encode())
    run_until(connection, lambda: all(received))
    assert sorted(into[0][1] for into in received) == [b"0", b"1", b"2"]
    channels[0].queue_delete(name)


def test_requeued_message_keeps_its_place(channel: BlockingChannel, name: str) -> None:
    """A message given back is delivered again before those behind it, marked as redelivered."""
    channel.queue_declare(name)
    for body in (b"first", b"second"):
        channel.basic_publish("", name, body)
    method = channel.basic_get(name)[0]
    channel.basic_nack(method.delivery_tag, requeue=True)
    again, second = fetch(channel, name), fetch(channel, name)
    assert (again.body, again.method.redelivered) == (b"first", True)
    assert (second.body, second.method.redelivered) == (b"second", False)
    channel.queue_delete(name)


def test_recover_redelivers(channel: BlockingChannel, name: str) -> None:
    """basic.recover gives everything unacknowledged back to the queue."""
    channel.queue_declare(name)
    channel.basic_publish("", name, b"again")
    channel.basic_get(name)
    channel.basic_recover(requeue=True)
    message = fetch(channel, name)
    assert (message.body, message.method.redelivered) == (b"again", True)
    channel.queue_delete(name)


def test_unacknowledged_returns_when_the_channel_closes(connection: pika.BlockingConnection, name: str) -> None:
    """Closing a channel gives its unacknowledged messages back."""
    channel, other = connection.channel(), connection.channel()
    channel.queue_declare(name)
    channel.basic_publish("", name, b"kept")
    assert channel.basic_get(name)[2] == b"kept"
    channel.close()
    assert fetch(other, name).method.redelivered
    other.queue_delete(name)


def test_no_ack_consumer(connection: pika.BlockingConnection, name: str) -> None:
    """What is delivered without acknowledgements is gone."""
    channel = connection.channel()
    channel.queue_declare(name)
    for _ in range(100):
        channel.basic_publish("", name, b"once")
    received: list[Any] = []
    collect(channel, name, received, auto_ack=True)
    run_until(connection, lambda: len(received) == 100)
    channel.close()
    other = connection.channel()
    assert is_empty(other, name)
    other.queue_delete(name)


def test_consumer_is_told_when_its_queue_is_deleted(connection: pika.BlockingConnection, name: str) -> None:
    """A client that can take basic.cancel gets one when the queue of its consumer is deleted."""
    channel, other = connection.channel(), connection.channel()
    channel.queue_declare(name)
    cancelled: list[Any] = []
    channel.add_on_cancel_callback(cancelled.append)
    tag = collect(channel, name, [])
    other.queue_delete(name)
    run_until(connection, lambda: cancelled)
    assert cancelled[0].method.consumer_tag == tag
    assert channel.is_open


def test_cancelled_consumer_gets_nothing(connection: pika.BlockingConnection, name: str) -> None:
    """After cancel-ok messages wait in the queue for another consumer."""
    channel = connection.channel()
    channel.queue_declare(name)
    received: list[Any] = []
    tag = collect(channel, name, received)
    channel.basic_cancel(tag)
    channel.basic_publish("", name, b"waits")
    connection.process_data_events(time_limit=0.2)
    assert received == []
    assert fetch(channel, name).body == b"waits"
    channel.queue_delete(name)


def test_priority_of_consumers(connection: pika.BlockingConnection, name: str) -> None:
    """As long as the consumer of the higher priority can take messages, the lower one gets none."""
    channel, other = connection.channel(), connection.channel()
    channel.queue_declare(name)
    low: list[Any] = []
    high: list[Any] = []
    channel.basic_qos(prefetch_count=10)
    collect(channel, name, low, arguments={"x-priority": 1})
    other.basic_qos(prefetch_count=2)
    collect(other, name, high, arguments={"x-priority": 5})
    for number in range(2):
        channel.basic_publish("", name, str(number).encode())
    run_until(connection, lambda: len(high) == 2)
    assert low == []
    channel.basic_publish("", name, b"2")
    run_until(connection, lambda: len(low) == 1)
    channel.queue_delete(name)


def test_exclusive_consumer(connection: pika.BlockingConnection, name: str) -> None:
    """An exclusive consumer refuses others with 403, and a queue that has one refuses an exclusive one."""
    channel, other = connection.channel(), connection.channel()
    channel.queue_declare(name)
    collect(channel, name, [], exclusive=True)
    with pytest.raises(ChannelClosedByBroker) as raised:
        collect(other, name, [])
    assert raised.value.reply_code == 403
    channel.queue_delete(name)


def test_exclusive_queue_belongs_to_its_connection(broker: BrokerAddress, name: str) -> None:
    """Another connection may not touch an exclusive queue (405), which goes with the connection that declared it."""
    owner = connect(broker)
    owner.channel().queue_declare(name, exclusive=True)
    with connected(broker) as other:
        with pytest.raises(ChannelClosedByBroker) as raised:
            other.channel().queue_declare(name, passive=True)
        assert raised.value.reply_code == 405
        owner.close()
        _until_gone(other, name)


def test_auto_delete_queue_goes_with_its_last_consumer(connection: pika.BlockingConnection, name: str) -> None:
    """An auto-delete queue stays until its last consumer leaves."""
    channel = connection.channel()
    channel.queue_declare(name, auto_delete=True)
    tags = [collect(channel, name, []) for _ in range(2)]
    channel.basic_cancel(tags[0])
    assert channel.queue_declare(name, passive=True).method.consumer_count == 1
    channel.basic_cancel(tags[1])
    _until_gone(connection, name)


def test_auto_delete_exchange_goes_with_its_last_binding(connection: pika.BlockingConnection, name: str) -> None:
    """An auto-delete exchange is deleted when nothing is bound to it any more."""
    channel = connection.channel()
    channel.exchange_declare(name, "fanout", auto_delete=True)
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, name)
    channel.queue_unbind(queue, name)
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.exchange_declare(name, passive=True)
    assert raised.value.reply_code == 404


def test_direct_reply_to(connection: pika.BlockingConnection, name: str) -> None:
    """A request with reply_to amq.rabbitmq.reply-to is answered on the channel that sent it, without a queue."""
    server, client = connection.channel(), connection.channel()
    server.queue_declare(name)

    def answer(channel: BlockingChannel, method: Any, properties: pika.BasicProperties, body: bytes) -> None:
        reply = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to, body.upper(), reply)
        channel.basic_ack(method.delivery_tag)

    server.basic_consume(name, answer)
    replies: list[Any] = []
    client.basic_consume(
        "amq.rabbitmq.reply-to",
        lambda _c, _m, properties, body: replies.append((properties.correlation_id, body)),
        True,
    )
    for number in range(3):
        request = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id=str(number))
        client.basic_publish("", name, f"request {number}".encode(), request)
    run_until(connection, lambda: len(replies) == 3)
    assert replies == [(str(number), f"REQUEST {number}".encode()) for number in range(3)]
    server.queue_delete(name)


def test_purge_and_counts(channel: BlockingChannel, name: str) -> None:
    """declare-ok counts what is ready, purge and delete say how many messages they removed."""
    channel.confirm_delivery()
    channel.queue_declare(name)
    for _ in range(5):
        channel.basic_publish("", name, b"x")
    assert channel.queue_declare(name, passive=True).method.message_count == 5
    assert channel.queue_purge(name).method.message_count == 5
    channel.basic_publish("", name, b"x")
    assert channel.queue_delete(name).method.message_count == 1


def _until_gone(connection: pika.BlockingConnection, queue: str) -> None:
    for _ in range(50):
        channel = connection.channel()
        try:
            channel.queue_declare(queue, passive=True)
        except ChannelClosedByBroker as closed:
            # Until the end of its owner's connection is noticed, it is still locked.
            if closed.reply_code == 404:
                return
            if closed.reply_code != 405:
                raise
        connection.process_data_events(time_limit=0.1)
    raise AssertionError(f"{queue} is still there")
