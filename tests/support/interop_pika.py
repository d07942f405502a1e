"""What every test with pika does: connect, and fetch one message."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pika
import pika.exceptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress

FETCH_SECONDS = 10.0


class Message(NamedTuple):
    """What basic.get gave."""

    method: Any
    properties: pika.BasicProperties
    body: bytes


def connect(broker: BrokerAddress, **parameters: Any) -> pika.BlockingConnection:
    """A blocking connection as the address's user, with `parameters` over the defaults."""
    credentials = pika.PlainCredentials(broker.user, broker.password)
    defaults = {"credentials": credentials, "socket_timeout": 10, "blocked_connection_timeout": 30, "heartbeat": 0}
    given = {**defaults, **parameters}
    return pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port, **given))


@contextmanager
def connected(broker: BrokerAddress, **parameters: Any) -> Iterator[pika.BlockingConnection]:
    """A connection that is closed at the end if it still can be."""
    connection = connect(broker, **parameters)
    try:
        yield connection
    finally:
        with suppress(pika.exceptions.AMQPError):
            connection.close()


def fetch(channel: BlockingChannel, queue: str, seconds: float = FETCH_SECONDS) -> Message:
    """The next message of `queue`, acknowledged; fails when none comes."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        message = Message(*channel.basic_get(queue, auto_ack=True))
        if message.method:
            return message
        time.sleep(0.02)
    raise AssertionError(f"no message in {queue} within {seconds} seconds")


def is_empty(channel: BlockingChannel, queue: str) -> bool:
    return channel.basic_get(queue, auto_ack=True)[0] is None
