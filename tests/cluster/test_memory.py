"""Memory stays bounded, whichever client or process misbehaves."""

from __future__ import annotations

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from benchmarks.wire import Address, Connection, publication
from services.common.partition import partition_of
from services.common.topology.slots import SlotName
from tests.support.hopline_command import HoplineCommand
from tests.support.interop_pika import connected, fetch
from tests.support.stack import Stack, running_stack, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel

MEBIBYTE = 1 << 20
QUEUE_MEMORY = 32 * MEBIBYTE
BODY = bytes(16 * 1024)
FAR_TOO_MUCH = 400 * MEBIBYTE
GROWTH = 200 * MEBIBYTE
STUCK_SECONDS = 3.0
BACKLOG = 24 * MEBIBYTE
CONCERNED = ("store", "queue-1", "queue-2")
"""Whose memory a hand-over takes; the others file, and load what they need for that, when it is time."""
MOVED = 72 * MEBIBYTE
"""While a backlog is handed over, of which the former owner has one copy: the next owner's, and what is on its way."""
SETTLED = 48 * MEBIBYTE
"""Soon afterwards: what is left of that. It was a copy in each of two caches, and the room that it had before."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose queue processes may hold little."""
    data = tmp_path_factory.mktemp("memory") / "data"
    with running_stack(data, {"HOPLINE_QUEUE_MEMORY": str(QUEUE_MEMORY)}) as started:
        yield started


@pytest.fixture
def producer(stack: Stack, name: str) -> Iterator[Connection]:
    """A connection that has declared the queue `name`, to which it will publish; the queue goes at the end."""
    address = Address(stack.address.host, stack.address.port)
    opened = Connection(address)
    opened.declare_queue(name, durable=False)
    yield opened
    opened.close()
    other = Connection(address)
    other.delete_queue(name)
    other.close()


def publish_until_held_back(producer: Connection, queue: str) -> int:
    """Publishes until the socket takes nothing for a while; gives the bytes it took."""
    message = publication("", queue, BODY, persistent=False)
    producer.socket.settimeout(STUCK_SECONDS)
    sent = 0
    while sent < FAR_TOO_MUCH:
        try:
            sent += producer.socket.send(message[sent % len(message) :])
        except TimeoutError:
            return sent
    return sent


def drain(stack: Stack, queue: str, count: int) -> None:
    """Consumes `count` messages."""
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=100)
        for received, (method, _, body) in enumerate(channel.consume(queue, inactivity_timeout=20), 1):
            assert method, f"only {received - 1} of {count} messages came"
            assert body == BODY
            channel.basic_ack(method.delivery_tag)
            if received == count:
                return


def test_producer_without_consumer(stack: Stack, producer: Connection, name: str) -> None:
    """A producer whose messages are not consumed is held back; when they are taken, all of them arrive."""
    before = stack.memory()
    sent = publish_until_held_back(producer, name)
    assert sent < FAR_TOO_MUCH
    assert stack.memory() - before < GROWTH
    drain(stack, name, sent // len(publication("", name, BODY, persistent=False)))


def test_consumer_that_does_not_read(stack: Stack, producer: Connection, name: str) -> None:
    """What a consumer does not read stays in its queue, whose producer is held back in the end."""
    before = stack.memory()
    consumer = Connection(Address(stack.address.host, stack.address.port))
    consumer.consume(name, prefetch=0)
    sent = publish_until_held_back(producer, name)
    grown = stack.memory() - before
    consumer.close()
    assert sent < FAR_TOO_MUCH
    assert grown < GROWTH


def test_consumer_that_does_not_read_stops_no_other(stack: Stack, producer: Connection, name: str) -> None:
    """While one consumer does not read, another queue on another connection is served."""
    consumer = Connection(Address(stack.address.host, stack.address.port))
    consumer.consume(name, prefetch=0)
    message = publication("", name, BODY, persistent=False)
    producer.socket.sendall(message * (12 * MEBIBYTE // len(message)))
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for _ in range(20):
            channel.basic_publish("", queue, b"not held up")
            assert fetch(channel, queue, 60).body == b"not held up"
    consumer.close()


class Owner:
    """Of a queue's partition."""

    def __init__(self, stack: Stack, queue: str) -> None:
        self._run = HoplineCommand(stack).run
        self._partition = partition_of(SlotName("/", queue), 64)

    def __call__(self) -> str:
        rows = map(json.loads, self._run("partitions", "--json").stdout.splitlines())
        owner: str = next(row["owner"] for row in rows if row["partition"] == self._partition)
        return owner

    def move(self) -> None:
        """To the other process, of two; returns when it serves the partition."""
        to = "queue-2" if self().startswith("queue-1") else "queue-1"
        moved = self._run("partitions", "move", str(self._partition), to)
        assert moved.returncode == 0, moved.stderr
        assert self().startswith(to)


def test_backlog_that_is_moved_by_hand(stack: Stack, producer: Connection, name: str) -> None:
    """It is in memory once more while it moves, at its next owner, and not in the store; soon it is there once."""
    message, count = publication("", name, BODY, persistent=False), BACKLOG // len(BODY)
    producer.socket.sendall(message * count)
    with connected(stack.address) as connection:
        channel = connection.channel()
        wait_until(lambda: _depth(channel, name) == count, 60, "the backlog in its queue")
        before, owner = stack.memory(*CONCERNED), Owner(stack, name)
        with ThreadPoolExecutor() as another:
            most = _most(stack, another.submit(owner.move))
        assert _depth(channel, name) == count
        wait_until(lambda: stack.memory(*CONCERNED) - before < SETTLED, 60, "memory given back")
    assert most - before < MOVED
    drain(stack, name, count)


def _most(stack: Stack, doing: Future[None]) -> int:
    """What those concerned have in memory meanwhile, at most."""
    most = stack.memory(*CONCERNED)
    while not doing.done():
        most = max(most, stack.memory(*CONCERNED))
        time.sleep(0.02)
    doing.result()
    return most


def _depth(channel: BlockingChannel, queue: str) -> int:
    return int(channel.queue_declare(queue, passive=True).method.message_count)
