"""pika declares queues with every argument there is: with a right value, a wrong-typed one and an impossible one."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

import pytest
from pika.data import encode_table
from pika.exceptions import ChannelClosedByBroker, UnsupportedAMQPFieldException

from tests.unit.common.arguments.test_reading import EACH

if TYPE_CHECKING:
    import pika
    from pika.adapters.blocking_connection import BlockingChannel

_NEEDS: dict[str, dict[str, Any]] = {
    "x-dead-letter-routing-key": {"x-dead-letter-exchange": ""},
    "x-delayed-retry-type": {"x-delayed-retry-min": 100},
    "x-flow-resume-bytes": {"x-max-length-bytes": 100},
    "x-qpid-flow-resume-capacity": {"x-qpid-capacity": 100},
}
"""What is nothing by itself."""


def _can_be_said(value: object) -> bool:
    """Whether pika can encode it."""
    try:
        encode_table([], {"x": value})
    except (UnsupportedAMQPFieldException, struct.error):
        return False
    return True


@pytest.mark.parametrize("argument", EACH)
def test_argument(connection: pika.BlockingConnection, name: str, argument: str) -> None:
    """The first makes a queue, which is the same when it is declared again; the others are 406, and it is named."""
    right, _, *wrong = EACH[argument]
    channel, table = connection.channel(), {argument: right, **_NEEDS.get(argument, {})}
    for _ in range(2):
        channel.queue_declare(name, durable=True, arguments=table)
    channel.queue_delete(name)
    for value in filter(_can_be_said, wrong):
        _refused(connection.channel(), name, argument, {**table, argument: value})


def _refused(channel: BlockingChannel, name: str, argument: str, table: dict[str, Any]) -> None:
    with pytest.raises(ChannelClosedByBroker, match=re.escape(argument)) as error:
        channel.queue_declare(name, durable=True, arguments=table)
    assert error.value.reply_code == 406


ALTERNATES: dict[str, tuple[Any, Any, Any]] = {
    "x-qpid-dlq-enabled": (True, 1, "perhaps"),
    "alternateBinding": ({"destination": "amq.fanout"}, 5, {"destination": "nothing"}),
}


@pytest.mark.parametrize("argument", ALTERNATES)
def test_where_dead_letters_go(connection: pika.BlockingConnection, name: str, argument: str) -> None:
    """Likewise; and another exchange by another name, beside it, is 406 too."""
    right, *wrong = ALTERNATES[argument]
    channel = connection.channel()
    for _ in range(2):
        channel.queue_declare(name, durable=True, arguments={argument: right})
    for queue in (name, f"{name}_DLQ"):
        channel.queue_delete(queue)
    for value in wrong:
        _refused(connection.channel(), name, argument, {argument: value})
    for other in ("alternateExchange", "x-dead-letter-exchange"):
        _refused(connection.channel(), name, argument, {argument: right, other: "another"})


CONSUMERS: dict[str, tuple[Any, Any, Any]] = {
    "x-priority": (-5, "5", 1 << 40),
    "x-filter-jms-selector": ("a = 1", 5, "a ="),
    "x-filter-no-consume": (True, "yes", 2),
    "x-qpid-no-local": (1, "yes", -1),
    "x-qpid-replay-period": (5, "soon", -1),
}
BINDINGS: dict[str, tuple[Any, Any, Any]] = {
    "x-match": ("any-with-x", 5, "some"),
    "x-filter-jms-selector": ("a = 1", 5, "a ="),
    "x-qpid-no-local": (True, 1, "yes"),
}


@pytest.mark.parametrize("argument", CONSUMERS)
def test_of_a_consumer(connection: pika.BlockingConnection, name: str, argument: str) -> None:
    """Likewise."""
    right, *wrong = CONSUMERS[argument]
    channel = connection.channel()
    channel.queue_declare(name, auto_delete=True)
    channel.basic_consume(name, lambda *_: None, arguments={argument: right})
    for value in wrong:
        with pytest.raises(ChannelClosedByBroker, match=re.escape(argument)) as error:
            connection.channel().basic_consume(name, lambda *_: None, arguments={argument: value})
        assert error.value.reply_code == 406


@pytest.mark.parametrize("argument", BINDINGS)
def test_of_a_binding(connection: pika.BlockingConnection, name: str, argument: str) -> None:
    """Likewise."""
    right, *wrong = BINDINGS[argument]
    channel = connection.channel()
    channel.queue_declare(name, exclusive=True)
    channel.queue_bind(name, "amq.headers", "", {argument: right})
    for value in wrong:
        with pytest.raises(ChannelClosedByBroker, match=re.escape(argument)) as error:
            connection.channel().queue_bind(name, "amq.headers", "", {argument: value})
        assert error.value.reply_code == 406


@pytest.mark.parametrize("value", [5, "x" * 256])
def test_of_an_exchange(channel: BlockingChannel, name: str, value: object) -> None:
    """Likewise."""
    with pytest.raises(ChannelClosedByBroker, match="alternate-exchange") as error:
        channel.exchange_declare(name, arguments={"alternate-exchange": value})
    assert error.value.reply_code == 406


def test_unknown_arguments(channel: BlockingChannel, name: str) -> None:
    """Say nothing, as in RabbitMQ, whatever they are."""
    channel.queue_declare(name, arguments={"x-mine": {"a": [1, None, "x"]}, "yours": True})
    channel.queue_delete(name)


def test_a_channels_queue(connection: pika.BlockingConnection, name: str) -> None:
    """Of Broker-J's exclusivity policies: other channels of the connection may not use it, and it goes with its own."""
    first, second = connection.channel(), connection.channel()
    first.queue_declare(name, arguments={"qpid.exclusivity_policy": "SESSION"})
    with pytest.raises(ChannelClosedByBroker) as error:
        second.basic_get(name)
    assert error.value.reply_code == 405
    first.close()
    with pytest.raises(ChannelClosedByBroker) as error:
        connection.channel().queue_declare(name, passive=True)
    assert error.value.reply_code == 404
