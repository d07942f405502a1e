"""Two store processes on one place: one writes, the other stands by, and takes over in any case."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGSTOP, SIGTERM, Signals
from typing import Any

import grpc.aio
import pytest

from services.common import grpc_channel
from services.common.clients.store import Journal, StoreClient
from services.common.clients.stores import ROLE, Stores
from services.common.config import Settings
from services.common.errors import BrokerError
from services.rpc.store_pb2 import Fence, KeepAliveReply, KeepAliveRequest
from services.rpc.store_pb2_grpc import StoreStub
from tests.support.collected import collect
from tests.support.elsewhere import Place
from tests.support.ports import free_port
from tests.support.publisher import Publisher
from tests.support.read_back import read_back
from tests.support.stack import HOST
from tests.support.store_process import StoreProcess
from tests.support.tcp_proxy import Proxy
from tests.support.took import Took

SILENT = 2.5
PATIENCE = 30.0  # seconds; how long it takes is put down, and asserted nowhere


class Pair:
    """Two processes, and what is asked of whichever writes."""

    def __init__(self, folder: Path, *processes: dict[str, Any]) -> None:
        """Of each, its settings beside those that all have."""
        more = {"store_processes": len(processes)}
        self.processes = [
            StoreProcess(folder, f"store-{number}", SILENT, **more, **its) for number, its in enumerate(processes, 1)
        ]
        self.address = Settings(data=folder, **processes[0]).address_of("store")
        self.client = StoreClient(self.address)
        self.journal = Journal(self.address, "test")

    async def start(self) -> None:
        """The first one writes."""
        await self.journal.start()
        for each in self.processes:
            await each.start()

    async def stores(self) -> Stores:
        """As it says of itself, when it says who writes."""
        found = Stores()
        async with asyncio.timeout(PATIENCE):
            while not found.writer:
                await asyncio.sleep(0.05)
                try:
                    table = await self.client.leases(ROLE)
                except BrokerError:
                    continue
                found.apply(table)
        return found

    async def writer(self) -> StoreProcess:
        """Which of them it is."""
        name = (await self.stores()).writer
        return next(each for each in self.processes if name.startswith(f"{each.name}-"))

    async def alive(self) -> set[int]:
        """Batches of partition 1."""
        _, batches = await read_back(self.client, Fence(lease="partition/1"))
        return {batch.entries.id for batch in batches}

    async def stop(self) -> None:
        await self.journal.stop()
        await self.client.close()
        for each in self.processes:
            if each.process:
                await each.stop()


@pytest.fixture
async def proxy(place: Place) -> AsyncIterator[Proxy]:
    """The way of the first one."""
    proxy = Proxy(place.port)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
async def pair(
    place: Place, proxy: Proxy, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Pair]:
    """The first one began to write."""
    monkeypatch.setattr(grpc_channel, "_doubts", True)  # as where there are several
    urls = url.replace(f":{place.port}/", f":{proxy.port}/"), url
    pair = Pair(tmp_path / "data", *({"store_url": each} for each in urls))
    await pair.start()
    yield pair
    await pair.stop()


async def test_the_process_that_writes_is_named(pair: Pair) -> None:
    """Both are members, one has the lease, and counts say so; only the writer listens at the store's address."""
    async with asyncio.timeout(PATIENCE):
        while len((found := await pair.stores()).members) < len(pair.processes):
            await asyncio.sleep(0.05)
    assert sorted(found.does().values()) == ["stands by", "writes"]
    assert await pair.writer() is pair.processes[0]
    assert sorted(found.members.values()) == sorted(each.address for each in pair.processes)
    counted = [
        (await collect(address))[1].get(("hopline_store_writes",))
        for address in (pair.address, *found.members.values())
    ]
    assert sorted(map(bool, counted)) == [False, True, True]
    assert await pair.processes[1].stop() == 0
    assert "Traceback" not in pair.processes[1].log.read_text()


async def test_they_start_together(url: str, tmp_path: Path) -> None:
    """Each finds that nobody writes; the one that is slower answers health checks nearly as soon as the other."""
    pair = Pair(tmp_path / "data", {"store_url": url}, {"store_url": url})
    took = Took("until both that have started together are healthy")
    async with asyncio.timeout(14):
        await asyncio.gather(*(each.start() for each in pair.processes))
    took.put_down()
    assert (await pair.stores()).writer
    await pair.stop()


@pytest.mark.parametrize("how", [SIGKILL, SIGTERM])
async def test_it_ends(pair: Pair, how: Signals) -> None:
    """Killed or in good order, under load, twice: the other goes on, and has all that was confirmed, once."""
    publisher = Publisher(pair.journal)
    for _ in range(2):
        await publisher.more(100)
        writer, took = await pair.writer(), Took(f"until the other confirms after {how.name}")
        writer.process.send_signal(how)
        await writer.process.wait()
        await publisher.more(20)
        took.put_down()
        assert await pair.writer() is not writer
        await writer.start()
    await publisher.stop()
    assert await pair.alive() == publisher.expected().keys()


async def test_it_stands_still(pair: Pair) -> None:
    """One that comes back when another writes confirms nothing, renews nothing, ends, and stands by again."""
    publisher = Publisher(pair.journal)
    await publisher.more(100)
    former = await pair.writer()
    before = await _call(former)
    await former.pause()
    took = Took("until the other confirms")
    await before.write(KeepAliveRequest(member="m", role="queue"))
    await publisher.more(20)
    took.put_down()
    former.resume()
    answer: object = None
    with suppress(grpc.aio.AioRpcError):
        answer = await before.read()
    assert not isinstance(answer, KeepAliveReply)
    assert await asyncio.wait_for(former.process.wait(), PATIENCE) == 0
    said = former.log.read_text()  # by the clock, or by what it writes into: whichever it hears first
    assert "this process writes no more" in said or "says that it writes by now" in said
    await former.start()
    assert await pair.writer() is not former
    await publisher.stop()
    assert await pair.alive() == publisher.expected().keys()


async def test_it_is_cut_off(pair: Pair, proxy: Proxy) -> None:
    """From the database alone, so that it could not find out which one writes: the next one tells it, and it ends."""
    publisher = Publisher(pair.journal)
    await publisher.more(100)
    former = pair.processes[0]
    await proxy.stop()
    assert await asyncio.wait_for(former.process.wait(), PATIENCE) == 0
    assert "says that it writes by now" in former.log.read_text()
    await publisher.more(20)
    await publisher.stop()
    assert await pair.alive() == publisher.expected().keys()


async def test_three(url: str, tmp_path: Path) -> None:
    """Of two that stand by one takes over, and the other the next time; all that was confirmed is there, once."""
    three = Pair(tmp_path / "data", *({"store_url": url} for _ in range(3)))
    await three.start()
    publisher = Publisher(three.journal)
    for left in (2, 1):
        await publisher.more(100)
        writer = await three.writer()
        await writer.kill()
        await publisher.more(20)
        living = [each for each in three.processes if each.process.returncode is None]
        assert len(living) == left
        assert await three.writer() in living
    await publisher.stop()
    assert await three.alive() == publisher.expected().keys()
    await three.stop()


@pytest.mark.parametrize("how", [SIGKILL, SIGSTOP])
async def test_over_a_network(url: str, tmp_path: Path, how: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store's name leads to all of them, only the one that writes listens."""
    monkeypatch.setattr(grpc_channel, "_doubts", True)
    ports = [(free_port(), free_port()) for _ in range(2)]
    address = "ipv4:" + ",".join(f"{HOST}:{port}" for port, _ in ports)
    listens = ({"store_listen": f"{HOST}:{one}", "store_process_address": f"{HOST}:{two}"} for one, two in ports)
    pair = Pair(tmp_path / "data", *({"store_url": url, "store_address": address, **each} for each in listens))
    await pair.start()
    publisher = Publisher(pair.journal)
    await publisher.more(100)
    pair.processes[0].process.send_signal(how)
    took = Took("until the other confirms")
    await publisher.more(20)
    took.put_down()
    assert await pair.writer() is pair.processes[1]
    await publisher.stop()
    assert await pair.alive() == publisher.expected().keys()
    await pair.stop()


async def _call(process: StoreProcess) -> grpc.aio.StreamStreamCall[KeepAliveRequest, KeepAliveReply]:
    """A member's, at this very process, whichever one writes; it was renewed once."""
    channel = grpc.aio.insecure_channel(process.address.replace(".sock", "-writes.sock"))
    call = StoreStub(channel).KeepAlive()
    await call.write(KeepAliveRequest(member="m", role="queue"))
    assert isinstance(await call.read(), KeepAliveReply)
    return call  # type: ignore[no-any-return]
