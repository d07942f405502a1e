"""pika's connections: what a mistake costs, credentials, virtual hosts, heartbeats, sockets that break."""

from __future__ import annotations

import gc
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from tests.support.interop_pika import connect, connected, fetch

if TYPE_CHECKING:
    from tests.support.interop_address import BrokerAddress

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in.*socket:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def sockets_collected() -> Iterator[None]:
    """Such sockets are collected before the next test, which would be blamed for them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


Mistake = Callable[[BlockingChannel, str], object]


def declared_differently(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, exclusive=True)
    channel.queue_declare(name, exclusive=True, arguments={"x-max-length": 5})


def exchange_of_another_type(channel: BlockingChannel, name: str) -> None:
    channel.exchange_declare("amq.direct", "fanout", durable=True)


def deleted_while_used(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, exclusive=True)
    channel.basic_consume(name, lambda *_: None)
    channel.queue_delete(name, if_unused=True)


def deleted_while_full(channel: BlockingChannel, name: str) -> None:
    channel.confirm_delivery()
    channel.queue_declare(name, exclusive=True)
    channel.basic_publish("", name, b"x")
    channel.queue_delete(name, if_empty=True)


def acknowledged_twice(channel: BlockingChannel, name: str) -> None:
    channel.basic_ack(17)
    channel.queue_declare("", exclusive=True)


def published_to_no_exchange(channel: BlockingChannel, name: str) -> None:
    channel.basic_publish(name, "", b"x")
    channel.queue_declare("", exclusive=True)


CHANNEL_MISTAKES: list[tuple[Mistake, int]] = [
    (lambda channel, name: channel.queue_declare(name, passive=True), 404),
    (lambda channel, name: channel.exchange_declare(name, passive=True), 404),
    (lambda channel, name: channel.basic_consume(name, lambda *_: None), 404),
    (lambda channel, name: channel.basic_get(name), 404),
    (lambda channel, name: channel.queue_purge(name), 404),
    (lambda channel, name: channel.queue_bind(name, "amq.direct", "x"), 404),
    (published_to_no_exchange, 404),
    (declared_differently, 406),
    (exchange_of_another_type, 406),
    (deleted_while_used, 406),
    (deleted_while_full, 406),
    (acknowledged_twice, 406),
    (lambda channel, name: channel.queue_declare("amq.mine"), 403),
    (lambda channel, name: channel.exchange_declare("amq.mine", "direct"), 403),
    (lambda channel, name: channel.queue_bind(name, "", "x"), 403),
    (lambda channel, name: channel.queue_declare(name, arguments={"x-message-ttl": -1}), 406),
]


@pytest.mark.parametrize(("mistake", "code"), CHANNEL_MISTAKES)
def test_mistake_closes_the_channel_only(
    connection: pika.BlockingConnection, name: str, mistake: Mistake, code: int
) -> None:
    """The channel closes with the specification's reply code, and the connection opens another."""
    with pytest.raises(ChannelClosedByBroker) as raised:
        mistake(connection.channel(), name)
    assert raised.value.reply_code == code
    assert connection.channel().queue_declare("", exclusive=True).method.queue


CONNECTION_MISTAKES: list[tuple[Mistake, int]] = [
    (lambda channel, name: channel.exchange_declare(name, "no-such-type"), 503),
    (lambda channel, name: channel.basic_qos(prefetch_size=10), 540),
]


@pytest.mark.parametrize(("mistake", "code"), CONNECTION_MISTAKES)
def test_mistake_closes_the_connection(broker: BrokerAddress, name: str, mistake: Mistake, code: int) -> None:
    """What no channel can be blamed for closes the connection with the specification's reply code."""
    connection = connect(broker)
    with pytest.raises(ConnectionClosedByBroker) as raised:
        mistake(connection.channel(), name)
    assert raised.value.reply_code == code


def test_wrong_password(broker: BrokerAddress) -> None:
    """Wrong credentials are refused with 403 before the connection opens."""
    with pytest.raises(ProbableAuthenticationError, match="403"):
        connect(broker, credentials=pika.PlainCredentials("guest", "wrong"))


def test_unknown_user(broker: BrokerAddress) -> None:
    """An unknown user is refused as a wrong password is: a client cannot learn which names exist."""
    with pytest.raises(ProbableAuthenticationError, match="403"):
        connect(broker, credentials=pika.PlainCredentials("nobody", "guest"))


def test_unknown_virtual_host(broker: BrokerAddress) -> None:
    """connection.open on a virtual host that does not exist is refused with 530."""
    with pytest.raises((ProbableAccessDeniedError, ConnectionClosedByBroker), match="530"):
        connect(broker, virtual_host="no-such-host")


def test_broken_socket_gives_messages_back(broker: BrokerAddress, name: str) -> None:
    """After a socket breaks, the next connection finds the unacknowledged message again, and durable queues."""
    broken = connect(broker)
    channel = broken.channel()
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True)
    channel.basic_publish("", name, b"survives", pika.BasicProperties(delivery_mode=2))
    assert channel.basic_get(name)[2] == b"survives"
    _break(broken)
    with connected(broker) as connection:
        again = connection.channel()
        message = fetch(again, name)
        assert (message.body, message.method.redelivered) == (b"survives", True)
        again.queue_delete(name)


def test_heartbeats_keep_an_idle_connection(broker: BrokerAddress) -> None:
    """With heartbeats of a second a connection that handles them lives through idle seconds."""
    with connected(broker, heartbeat=1) as connection:
        connection.process_data_events(time_limit=4)
        assert connection.channel().queue_declare("", exclusive=True)


def test_silent_client_is_disconnected(broker: BrokerAddress) -> None:
    """A client that promised heartbeats and sends none is disconnected, and its exclusive queue goes."""
    connection = connect(broker, heartbeat=1)
    queue = connection.channel().queue_declare("", exclusive=True).method.queue
    with connected(broker) as other:
        deadline = time.monotonic() + 15
        code = 405
        while code == 405 and time.monotonic() < deadline:
            with pytest.raises(ChannelClosedByBroker) as raised:
                other.channel().queue_declare(queue, passive=True)
            code = raised.value.reply_code
            time.sleep(0.2)
        assert code == 404
    with pytest.raises(pika.exceptions.AMQPError):
        connection.process_data_events(time_limit=5)


def test_many_channels(connection: pika.BlockingConnection) -> None:
    """A connection holds hundreds of channels, and a closed one's number is used again."""
    channels = [connection.channel() for _ in range(300)]
    for channel in channels[::2]:
        channel.close()
    again = [connection.channel() for _ in range(150)]
    assert all(channel.is_open for channel in again)


def test_server_properties(broker: BrokerAddress) -> None:
    """The server announces the capabilities that clients look for before they use an extension."""
    with connected(broker) as connection:
        assert connection.publisher_confirms_supported
        assert connection.exchange_exchange_bindings_supported
        assert connection.basic_nack_supported
        assert connection.consumer_cancel_notify_supported


def _break(connection: pika.BlockingConnection) -> None:
    """Cuts the socket under the library, as a pulled cable would."""
    transport = connection._impl._transport
    plain: socket.socket = transport._sock
    plain.shutdown(socket.SHUT_RDWR)
    with pytest.raises(pika.exceptions.AMQPError):
        connection.process_data_events(time_limit=5)
