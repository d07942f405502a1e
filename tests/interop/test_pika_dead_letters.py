"""pika sees messages move: rejected, expired and overflowing ones go to the dead-letter exchange, with a history."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pika

from tests.support.interop_pika import Message, fetch, is_empty

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel


def declare(channel: BlockingChannel, name: str, **arguments: object) -> str:
    """The queue `name`, whose dead letters go through an exchange to the queue returned."""
    dead = f"{name}-dead"
    channel.exchange_declare(f"{name}-dlx", "direct", auto_delete=True)
    channel.queue_declare(dead)
    channel.queue_bind(dead, f"{name}-dlx", "dead")
    routed = {"x-dead-letter-exchange": f"{name}-dlx", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare(name, arguments={**routed, **arguments})
    return dead


def drop(channel: BlockingChannel, name: str) -> None:
    for queue in (name, f"{name}-dead"):
        channel.queue_delete(queue)


def death(message: Message) -> tuple[str, str, int, str, list[str]]:
    """The newest entry of x-death."""
    entry = message.properties.headers["x-death"][0]
    assert entry["time"]
    return entry["reason"], entry["queue"], entry["count"], entry["exchange"], entry["routing-keys"]


def test_rejected(channel: BlockingChannel, name: str) -> None:
    """A rejected message goes to the dead-letter exchange; x-death and the x-first-death headers say why."""
    dead = declare(channel, name)
    channel.basic_publish("", name, b"bad", pika.BasicProperties(headers={"mine": 1}, correlation_id="c"))
    method, _, _ = next(channel.consume(name, inactivity_timeout=10))
    channel.basic_reject(method.delivery_tag, requeue=False)
    channel.cancel()
    message = fetch(channel, dead)
    assert message.body == b"bad"
    assert death(message) == ("rejected", name, 1, "", [name])
    headers = message.properties.headers
    first = [headers[f"x-first-death-{key}"] for key in ("reason", "queue", "exchange")]
    assert (headers["mine"], first) == (1, ["rejected", name, ""])
    assert message.properties.correlation_id == "c"
    assert (message.method.exchange, message.method.routing_key) == (f"{name}-dlx", "dead")
    drop(channel, name)


def test_a_dead_letter_queue_of_its_own(channel: BlockingChannel, name: str) -> None:
    """x-qpid-dlq-enabled: what is rejected goes to the _DLQ, as the dead letter that it is; what expires is gone."""
    channel.queue_declare(name, durable=True, arguments={"x-qpid-dlq-enabled": True, "x-message-ttl": 300})
    tags: list[int] = []
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(name, lambda _channel, method, *_: tags.append(method.delivery_tag), consumer_tag="waits")
    channel.basic_publish("", name, b"bad")
    while not tags:  # it is there before its time is over, since who gets it waits
        channel.connection.process_data_events(1)
    channel.basic_publish("", name, b"late")
    channel.connection.sleep(1)
    channel.basic_cancel("waits")
    assert is_empty(channel, name)
    channel.basic_reject(tags[0], requeue=False)
    message = fetch(channel, f"{name}_DLQ")
    assert (message.body, death(message)) == (b"bad", ("rejected", name, 1, "", [name]))
    channel.queue_delete(name)
    assert is_empty(channel, f"{name}_DLQ")
    channel.queue_delete(f"{name}_DLQ")


def test_nacked_many(channel: BlockingChannel, name: str) -> None:
    """nack with multiple and without requeue dead-letters all up to its tag, in order."""
    dead = declare(channel, name)
    for number in range(5):
        channel.basic_publish("", name, str(number).encode())
    tags = [method.delivery_tag for method, _, _ in (channel.basic_get(name) for _ in range(5)) if method]
    assert len(tags) == 5
    channel.basic_nack(tags[-1], multiple=True, requeue=False)
    assert [fetch(channel, dead).body for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    drop(channel, name)


def test_expired_by_the_queue(channel: BlockingChannel, name: str) -> None:
    """A message that waits longer than x-message-ttl is dead-lettered as expired, without a consumer asking."""
    dead = declare(channel, name, **{"x-message-ttl": 200})
    channel.basic_publish("", name, b"late")
    assert death(fetch(channel, dead))[:3] == ("expired", name, 1)
    assert is_empty(channel, name)
    drop(channel, name)


def test_expired_by_its_own_expiration(channel: BlockingChannel, name: str) -> None:
    """A message's own expiration counts, is taken off it, and is kept in x-death."""
    dead = declare(channel, name)
    channel.basic_publish("", name, b"late", pika.BasicProperties(expiration="100"))
    message = fetch(channel, dead)
    assert death(message)[:3] == ("expired", name, 1)
    assert message.properties.expiration is None
    assert message.properties.headers["x-death"][0]["original-expiration"] == "100"
    drop(channel, name)


def test_overflow_drops_the_head(channel: BlockingChannel, name: str) -> None:
    """Over x-max-length the oldest message is dead-lettered with the reason maxlen."""
    channel.confirm_delivery()
    dead = declare(channel, name, **{"x-max-length": 2})
    for number in range(3):
        channel.basic_publish("", name, str(number).encode())
    message = fetch(channel, dead)
    assert (message.body, death(message)[:3]) == (b"0", ("maxlen", name, 1))
    assert [fetch(channel, name).body for _ in range(2)] == [b"1", b"2"]
    drop(channel, name)


def test_retry_loop_counts(channel: BlockingChannel, name: str) -> None:
    """Rejected to a waiting queue, expired back: the delayed retry that applications build; x-death counts."""
    channel.queue_declare(
        f"{name}-dead",
        arguments={"x-message-ttl": 50, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name},
    )
    channel.queue_declare(name, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"})
    channel.basic_publish("", name, b"retry")
    for _ in range(3):
        method, properties, _ = next(channel.consume(name, inactivity_timeout=10))
        channel.basic_reject(method.delivery_tag, requeue=False)
    method, properties, body = next(channel.consume(name, inactivity_timeout=10))
    channel.basic_ack(method.delivery_tag)
    channel.cancel()
    counts = {(entry["queue"], entry["reason"]): entry["count"] for entry in properties.headers["x-death"]}
    assert body == b"retry"
    assert counts == {(name, "rejected"): 3, (f"{name}-dead", "expired"): 3}
    drop(channel, name)


def test_queue_expires(channel: BlockingChannel, name: str) -> None:
    """An unused queue with x-expires is deleted."""
    queue = channel.queue_declare(name, arguments={"x-expires": 200}).method.queue
    returned: list[object] = []
    channel.add_on_return_callback(lambda *returns: returned.append(returns))
    give_up = time.monotonic() + 30
    while not returned and time.monotonic() < give_up:  # what is published is no use of it
        channel.basic_publish("", queue, b"nobody", mandatory=True)
        channel.connection.process_data_events(time_limit=0.2)
    assert returned
