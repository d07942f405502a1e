"""Persistent messages, many under way, each to several durable queues: every confirmed copy has to be in its queue."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import aio_pika

from benchmarks.wire import BODY, Address, Connection, frame_length
from services.common.partition import partition_of
from services.common.topology.slots import SlotName
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.support.interop_address import BrokerAddress
    from tests.support.stack import Stack

DRAIN_SECONDS = 60.0
PARTITIONS = 64  # of a stack
SHARED = 4  # of these all queues are


class CopiesLoad:
    """Publishes to a fanout exchange, or to one queue after the other, until it is stopped; then counts."""

    def __init__(self, address: BrokerAddress, prefix: str, queues: int, *, fan_out: bool, size: int = 64) -> None:
        self._address = Address(address.host, address.port, address.user, address.password)
        self._url = f"amqp://{address.user}:{address.password}@{address.host}:{address.port}/"
        self._exchange = f"{prefix}-copies" if fan_out else ""
        self.queues = list(itertools.islice(_names(prefix), queues))
        self._size = size
        self._numbers = itertools.count()
        self.confirmed: list[int] = []
        self._stopped = False

    async def run(self, disturb: Callable[[], Awaitable[None]], under_way: int, publishers: int = 1) -> None:
        """Publishes from so many connections, each with so many under way, while `disturb` runs."""
        await self._declare()
        work = [asyncio.create_task(self._publish(under_way)) for _ in range(publishers)]
        await disturb()
        self._stopped = True
        await asyncio.gather(*work)

    async def lost(self) -> list[tuple[str, int]]:
        """Copies of confirmed messages that are in none of the queues where they belong."""
        return await asyncio.to_thread(
            lambda: [(queue, number) for queue in self.queues for number in self._lost(queue)]
        )

    def _lost(self, queue: str) -> list[int]:
        """Of one queue, which is emptied. By frames: objects of a client take longer than all else."""
        missing = {number for number in self.confirmed if queue in self._queues_of(number)}
        connection = Connection(self._address)
        try:
            connection.socket.settimeout(DRAIN_SECONDS)
            connection.consume(queue, prefetch=0)
            received, data = True, bytearray(connection.leftover())
            while missing and received:
                missing.difference_update(int(body.rstrip(b".")) for body in _bodies(data))
                received = connection.socket.recv(1 << 20) if missing else b""
                data += received
        except TimeoutError:
            pass  # they do not come
        finally:
            connection.close()
        return sorted(missing)

    def _queues_of(self, number: int) -> list[str]:
        return self.queues if self._exchange else [self.queues[number % len(self.queues)]]

    async def _declare(self) -> None:
        async with await aio_pika.connect(self._url) as connection:
            channel = await connection.channel()
            for name in self.queues:
                queue = await channel.declare_queue(name, durable=True)
                if self._exchange:
                    exchange = await channel.declare_exchange(self._exchange, "fanout")
                    await queue.bind(exchange)

    async def _publish(self, under_way: int) -> None:
        async with await aio_pika.connect(self._url) as connection:
            channel = await connection.channel(publisher_confirms=True)
            target = channel.default_exchange
            if self._exchange:
                target = await channel.get_exchange(self._exchange, ensure=False)
            await asyncio.gather(*(self._publish_on(target) for _ in range(under_way)))

    async def _publish_on(self, exchange: aio_pika.abc.AbstractExchange) -> None:
        while not self._stopped:
            number = next(self._numbers)
            body = (b"%d" % number).ljust(self._size, b".")
            message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await exchange.publish(message, routing_key=self._queues_of(number)[0])
            self.confirmed.append(number)


def _bodies(data: bytearray) -> Iterator[bytes]:
    """What whole frames at the start of `data` have of bodies, each of which has one; the frames are taken out."""
    at = 0
    while (length := frame_length(data, at)) and at + length <= len(data):
        if data[at] == BODY:
            yield bytes(data[at + 7 : at + length - 1])
        at += length
    del data[:at]


def _names(prefix: str) -> Iterator[str]:
    """Of queues that share a few partitions: checksums of numbers spread better than names of applications do."""
    names = (f"{prefix}-{number}" for number in itertools.count())
    return (name for name in names if partition_of(SlotName("/", name), PARTITIONS) < SHARED)


async def kill_in_turn(stack: Stack, seconds: float, every: float) -> None:
    """kill -9 of one queue process, then of the other, and so on."""
    end = time.monotonic() + seconds
    for service in itertools.cycle(("queue-1", "queue-2")):
        await asyncio.sleep(every)
        pid = await asyncio.to_thread(stack.kill, service)
        await asyncio.to_thread(_until_replaced, stack, service, pid)
        if time.monotonic() > end:
            return


def _until_replaced(stack: Stack, service: str, pid: int) -> None:
    wait_until(lambda: stack.pid(service) != pid, 60, f"new {service}")


@contextmanager
def short_of_cpu(stack: Stack, services: tuple[str, ...], share: float) -> Iterator[None]:
    """The services stand still for the rest of each tenth of a second."""
    over = threading.Event()

    def hold_back() -> None:
        while not over.is_set():
            held = [pid for pid in map(stack.pid, services) if _signalled(pid, signal.SIGSTOP)]
            time.sleep(0.1 * (1 - share))
            for pid in held:
                _signalled(pid, signal.SIGCONT)
            time.sleep(0.1 * share)

    thread = threading.Thread(target=hold_back)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _signalled(pid: int, number: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
