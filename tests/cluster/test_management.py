"""The management node while mgmt is killed: its clients get an error, and all others go on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pika
import pytest

from tests.support.interop_pika import connected
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.stack import Stack

REPLIES, NODE = "amq.rabbitmq.reply-to", "$management"
HEADERS = {"type": "org.amqp.management", "identity": "self", "operation": "GET-MGMT-NODES"}
SECONDS = 30


class Asking:
    """A client that asks, one request after the other."""

    def __init__(self, channel: BlockingChannel) -> None:
        self.channel = channel
        self._statuses: list[int] = []
        channel.basic_consume(REPLIES, self._reply, auto_ack=True)

    def _reply(self, _channel: object, _method: object, properties: pika.BasicProperties, _body: bytes) -> None:
        self._statuses.append(properties.headers["statusCode"])

    def __call__(self) -> int:
        """The status of a reply."""
        before = len(self._statuses)
        self.channel.basic_publish("", NODE, b"", pika.BasicProperties(reply_to=REPLIES, headers=HEADERS))
        give_up = time.monotonic() + SECONDS
        while len(self._statuses) == before:
            assert time.monotonic() < give_up, "no reply"
            self.channel.connection.process_data_events(0.1)
        return self._statuses[-1]


@pytest.fixture
def ask(stack: Stack) -> Iterator[Asking]:
    with connected(stack.address) as connection:
        yield Asking(connection.channel())


def test_management_dies(stack: Stack, ask: Asking, name: str) -> None:
    """Every request is answered, by 503 while mgmt is away and as ever when it is back; messages pass meanwhile."""
    ask.channel.queue_declare(name)
    assert ask() == 200
    asked = 0

    def answers(status: int) -> bool:
        nonlocal asked
        asked += 1
        answer = ask()
        ask.channel.basic_publish("", name, b"m")
        assert answer in {200, 503}
        return answer == status

    with stack.without("mgmt"):
        wait_until(lambda: answers(503), SECONDS, "word that it is away")
    wait_until(lambda: answers(200), SECONDS, "an answer of the next one")
    assert ask.channel.queue_declare(name, passive=True).method.message_count == asked
