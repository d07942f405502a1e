"""Queue processes that come and go, sleep too long, or read much back, on a store on disk."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.common.grpc_channel import is_serving
from services.rpc import queue_pb2 as pb
from tests.support.queue_client import Client, Consumer
from tests.support.queue_house import House, RawLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROUNDS = 6
QUEUES = 12
UNDER_WAY = 60
MILLION = 1_000_000
BATCH = 5000


@pytest.fixture
def lease_ttl_ms() -> int:
    """Longer than a busy machine keeps a process waiting: a process that is asked to stop hands over before that."""
    return 10_000


@pytest.fixture
async def house(tmp_path: Path, lease_ttl_ms: int) -> AsyncIterator[House]:
    """Store on disk, router, one queue process."""
    built = House(tmp_path, store_provider="sqlite", lease_ttl_ms=lease_ttl_ms, place_ttl_ms=lease_ttl_ms)
    await built.start()
    yield built
    await built.stop()


@pytest.fixture
async def clients(house: House) -> AsyncIterator[list[Client]]:
    """Two gateways' worth."""
    started = [Client(house, f"client-{number}") for number in range(2)]
    for client in started:
        await client.start()
    yield started
    for client in started:
        await client.stop()


async def publish_for_ever(client: Client, queue_id: int, name: str, confirmed: list[bytes]) -> None:
    """Runs of random length, some transient, some persistent; the bodies tell their order.

    As fast as they are confirmed: more would be overload, in which leases run out and what is transient may be lost.
    """
    chance = random.Random(name)
    numbers = itertools.count()
    while True:
        bodies = [f"{name} {next(numbers)}".encode() for _ in range(chance.randint(1, 8))]
        client.publish(queue_id, bodies, confirmed, persistent=chance.random() < 0.5)
        await asyncio.sleep(0.005)
        while client.under_way > UNDER_WAY:
            await asyncio.sleep(0.005)


def wrong(bodies: list[bytes]) -> list[tuple[int, int]]:
    """Neighbours (first ones only) of which the second is not the next of its publisher."""
    numbers = [int(body.split()[1]) for body in bodies]
    return [pair for pair in itertools.pairwise([-1, *numbers]) if pair[1] != pair[0] + 1][:9]


async def come_and_go(house: House) -> None:
    """Up to three processes; each ends once."""
    await house.start_queue("queue-2")
    await house.start_queue("queue-3")
    for number in range(ROUNDS):
        name = f"queue-{number % 3 + 1}"
        await house.queues.pop(name).stop()
        await house.start_queue(name)
        await asyncio.sleep(0.3)


@pytest.mark.timeout(180)
async def test_nothing_is_lost_or_doubled(house: House, clients: list[Client]) -> None:
    """Under load every confirmed message comes once and in order, transient or not, wherever its queue moves."""
    queue_ids = [await house.declare(f"q{number}", durable=number % 2 == 0) for number in range(QUEUES)]
    confirmed: dict[str, list[bytes]] = {}
    consumers: dict[str, Consumer] = {}
    load = []
    for number, queue_id in enumerate(queue_ids):
        name = f"q{number}"
        consumers[name] = clients[number // 2 % 2].consume(queue_id)
        work = publish_for_ever(clients[number % 2], queue_id, name, confirmed.setdefault(name, []))
        load.append(asyncio.create_task(work))
    await come_and_go(house)
    for task in load:
        task.cancel()
    await asyncio.gather(*load, return_exceptions=True)
    async with asyncio.timeout(30):
        while any(client.under_way for client in clients) or any(
            len(consumers[name].received) < len(confirmed[name]) for name in confirmed
        ):
            await asyncio.sleep(0.05)
    assert min(map(len, confirmed.values())) > 100
    for name, consumer in consumers.items():
        assert (len(consumer.received), wrong(consumer.received)) == (len(confirmed[name]), []), name


@pytest.mark.parametrize("lease_ttl_ms", [1000])
async def test_a_process_that_slept_too_long(house: House) -> None:
    """An owner that was stopped for longer than its lease delivers nothing and writes nothing when it wakes up."""
    queue_id = await house.declare("q", durable=True)
    async with queue_process(house, "queue-2") as process:
        await house.queues.pop("queue-1").stop()
        slept = await house.link("queue-2")
        await owned(slept, queue_id)
        await slept.publish(queue_id, [b"before"], persistent=True)
        process.send_signal(signal.SIGSTOP)
        await slept.send(publishes=[slept.batch(queue_id, [b"late"], persistent=True)])
        await slept.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=queue_id, messages=10, bytes=1 << 30)])
        successor = await house.start_queue("queue-1")
        link = await house.link("queue-1", origin=1001)
        await link.until(lambda: queue_id in successor._host.registry.queues, 20)
        await link.attach(queue_id)
        await link.until(lambda: link.bodies == [b"before"])
        process.send_signal(signal.SIGCONT)
        await slept.until(lambda: slept.refusals() and any(frame.attached for frame in slept.frames))
        assert slept.refusals() == [(0, 1, pb.NOT_OWNER)]
        assert slept.bodies == []
        await link.close()
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    last = await house.link("queue-1", origin=1002)
    assert await owned(last, queue_id) == 1


@pytest.mark.timeout(300)
async def test_a_million_read_back(house: House) -> None:
    """A million persistent messages come back, in memory that they take anyway, and in order."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    for first in range(0, MILLION, BATCH):
        await link.publish(queue_id, [b"%d" % number for number in range(first, first + BATCH)], persistent=True)
    await link.send(heard=sum(1 for frame in link.frames if frame.done))
    await house.queues.pop("queue-1").stop()
    async with queue_process(house, "queue-2") as process:
        began = time.monotonic()
        reader = await house.link("queue-2", origin=1001)
        assert await owned(reader, queue_id) == MILLION, f"after {time.monotonic() - began:.1f} s"
        took, peak = time.monotonic() - began, peak_memory(process.pid)
        await reader.attach(queue_id, messages=2 * BATCH)
        await reader.until(lambda: len(reader.bodies) == 2 * BATCH)
        assert reader.bodies == [b"%d" % number for number in range(2 * BATCH)]
        assert peak < 1 << 30, f"{peak >> 20} MiB, {took:.1f} s"


async def owned(link: RawLink, queue_id: int) -> int:
    """How many messages wait in a queue, when the process at the other end has it."""
    async with asyncio.timeout(60):
        for number in itertools.count(1000):
            request = pb.InspectRequest(queue_id=queue_id)
            if (reply := await link.request(number, inspect=request)).reason == pb.NONE:
                return reply.message_count
            await asyncio.sleep(0.05)
    raise AssertionError


@contextlib.asynccontextmanager
async def queue_process(house: House, name: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A queue process of its own, beside those of the house."""
    settings = house.settings
    environment = {
        **os.environ,
        "HOPLINE_DATA": str(settings.data),
        "HOPLINE_PARTITIONS": str(settings.partitions),
        "HOPLINE_LEASE_TTL_MS": str(settings.lease_ttl_ms),
    }
    command = (sys.executable, "-P", "-m", "services", "queue", "--name", name)
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(20):
            while not await is_serving(settings.address_of(name)):
                await asyncio.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        await process.wait()


def peak_memory(pid: int) -> int:
    """Bytes that a process has had resident at most."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
