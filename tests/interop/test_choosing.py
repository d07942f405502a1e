"""Consumers with selectors, and browsers, with clients of other projects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.interop.test_pika_consume import collect, run_until
from tests.support.interop_pika import fetch
from tests.support.proton_client import running

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress


FILTERS = {"only": {"x-filter-jms-selector": ["colour = 'red'"]}}


def publish(channel: BlockingChannel, queue: str, *colours: str) -> None:
    for number, colour in enumerate(colours, 1):
        properties = pika.BasicProperties(headers={"colour": colour, "number": number})
        channel.basic_publish("", queue, b"%d" % number, properties)


def test_a_selector(connection: pika.BlockingConnection, name: str) -> None:
    """x-filter-jms-selector: the consumer gets what it selects, others the rest."""
    channel, red, rest = connection.channel(), list[Any](), list[Any]()
    channel.queue_declare(name)
    publish(channel, name, "red", "blue", "red")
    collect(channel, name, red, arguments={"x-filter-jms-selector": "colour = 'red'"}, auto_ack=True)
    publish(channel, name, "red", "red", "blue")
    run_until(connection, lambda: len(red) == 4)
    collect(channel, name, rest, auto_ack=True)
    run_until(connection, lambda: len(rest) == 2)
    assert [body for _, body in red] == [b"1", b"3", b"1", b"2"]
    assert [body for _, body in rest] == [b"2", b"3"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"x-filter-jms-selector": "colour ="}, "'colour =' is none: it ends too early"),
        ({"x-filter-jms-selector": 1}, "x-filter-jms-selector must be text, not 1"),
        ({"x-filter-no-consume": "x"}, "x-filter-no-consume must be true or false, not 'x'"),
    ],
)
def test_a_wrong_one(connection: pika.BlockingConnection, name: str, arguments: dict[str, Any], said: str) -> None:
    """precondition-failed, which says what is wrong."""
    channel = connection.channel()
    channel.queue_declare(name)
    with pytest.raises(ChannelClosedByBroker, match=said) as closed:
        channel.basic_consume(name, lambda *_: None, arguments=arguments)
    assert closed.value.reply_code == 406


def test_a_browser(connection: pika.BlockingConnection, name: str) -> None:
    """x-filter-no-consume: it sees all that waits, and what it acknowledges, or rejects, stays."""
    channel, seen = connection.channel(), list[Any]()
    channel.queue_declare(name)
    publish(channel, name, "red", "blue", "green")
    channel.basic_qos(prefetch_count=1)
    collect(channel, name, seen, arguments={"x-filter-no-consume": True})
    for number, settle in enumerate((channel.basic_ack, channel.basic_nack, channel.basic_reject), 1):
        run_until(connection, lambda number=number: len(seen) == number)
        settle(seen[-1][0])
    channel.close()
    other = connection.channel()
    assert [fetch(other, name).body for _ in range(3)] == [b"1", b"2", b"3"]


def test_a_browser_beside_a_consumer(connection: pika.BlockingConnection, name: str) -> None:
    """A browser's acknowledgement settles nothing for the consumer that holds it: when that goes, it comes again."""
    channel, taker, seen, taken = connection.channel(), connection.channel(), list[Any](), list[Any]()
    channel.queue_declare(name)
    collect(channel, name, seen, arguments={"x-filter-no-consume": True})
    publish(channel, name, "red")
    run_until(connection, lambda: seen)
    collect(taker, name, taken)
    run_until(connection, lambda: taken)
    channel.basic_ack(seen[0][0])
    channel.close()
    taker.close()
    message = fetch(connection.channel(), name)
    assert (message.body, message.method.redelivered) == (b"1", True)


def test_a_queue_that_is_only_browsed(connection: pika.BlockingConnection, name: str) -> None:
    """ensureNondestructiveConsumers: all consumers browse, and messages that they acknowledge stay."""
    channel, seen = connection.channel(), list[Any]()
    channel.queue_declare(name, arguments={"ensureNondestructiveConsumers": True})
    publish(channel, name, "red", "blue")
    collect(channel, name, seen)
    run_until(connection, lambda: len(seen) == 2)
    channel.basic_ack(seen[-1][0], multiple=True)
    channel.close()
    assert [fetch(connection.channel(), name).body for _ in range(2)] == [b"1", b"2"]


def test_default_filters(connection: pika.BlockingConnection, name: str) -> None:
    """What a consumer selects, it selects from what the queue gives any: a table, or the JSON of one."""
    for number, table in enumerate((FILTERS, json.dumps(FILTERS))):
        channel, seen = connection.channel(), list[Any]()
        queue = f"{name}-{number}"
        channel.queue_declare(queue, arguments={"qpid.default_filters": table})
        publish(channel, queue, "red", "blue", "red", "red")
        collect(channel, queue, seen, arguments={"x-filter-jms-selector": "number > 1"}, auto_ack=True)
        run_until(connection, lambda seen=seen: len(seen) == 2)
        assert [body for _, body in seen] == [b"3", b"4"]
        assert fetch(channel, queue).body == b"1"


def test_qpid_proton(broker: BrokerAddress, connection: pika.BlockingConnection, name: str) -> None:
    """The selector filter, and distribution mode copy, of AMQP 1.0 (part 3, 3.5.8 and 3.5.3)."""
    channel = connection.channel()
    channel.queue_declare(name)
    publish(channel, name, "red", "blue", "red", "blue")
    with running() as client:
        client.do("connect", url=f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}")
        client.do("receiver", name="browser", address=name, credit=9, copies=True, selector="colour = 'red'")
        client.do("receiver", name="taker", address=name, credit=9, selector="number > 2")
        assert [client.do("receive", name="browser")["body"] for _ in range(2)] == ["1", "3"]
        for body in ("3", "4"):
            assert client.do("receive", name="taker")["body"] == body
            client.do("settle", name="taker", how="accept")
        assert client.fails("receiver", name="x", address=name, selector="number >") == {"error": "amqp:invalid-field"}
        client.do("close")
    assert [fetch(connection.channel(), name).body for _ in range(2)] == [b"1", b"2"]


def test_qpid_proton_and_an_exchange(broker: BrokerAddress, connection: pika.BlockingConnection, name: str) -> None:
    """The selector filter of an exchange: its queue gets what it selects."""
    channel = connection.channel()
    channel.exchange_declare(name, "topic")
    with running() as client:
        client.do("connect", url=f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}")
        client.do("receiver", name="red", address=name, credit=9, settled=True, selector="colour = 'red'")
        for number, colour in enumerate(("red", "blue", "red"), 1):
            properties = pika.BasicProperties(headers={"colour": colour})
            channel.basic_publish(name, "any.key", b"%d" % number, properties)
        assert [client.do("receive", name="red")["body"] for _ in range(2)] == ["1", "3"]
        client.do("close")


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_a_binding(connection: pika.BlockingConnection, name: str, kind: str) -> None:
    """x-filter-jms-selector of queue.bind and of exchange.bind; what is no selector is 406."""
    channel = connection.channel()
    for exchange in (name, f"{name}-2"):
        channel.exchange_declare(exchange, kind)
        channel.queue_declare(exchange)
        channel.queue_bind(exchange, exchange, "k")
    red = {"x-filter-jms-selector": "colour = 'red'"}
    channel.exchange_bind(f"{name}-2", name, "k", arguments=red)
    channel.queue_unbind(name, name, "k")
    channel.queue_bind(name, name, "k", arguments={"x-filter-jms-selector": "number > 1"})
    for number, colour in enumerate(("red", "blue", "red"), 1):
        properties = pika.BasicProperties(headers={"colour": colour, "number": number})
        channel.basic_publish(name, "k", b"%d" % number, properties)
    assert [fetch(channel, name).body for _ in range(2)] == [b"2", b"3"]
    assert [fetch(channel, f"{name}-2").body for _ in range(2)] == [b"1", b"3"]
    with pytest.raises(ChannelClosedByBroker, match="x-filter-jms-selector") as closed:
        channel.queue_bind(name, name, "k", arguments={"x-filter-jms-selector": "colour ="})
    assert closed.value.reply_code == 406
