"""A store process that begins to write tells the one before, which may be cut off from the engine and know nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from services.common.clients.store import StoreClient
from services.common.clients.stores import ROLE
from services.common.config import Settings
from services.common.errors import InternalError
from services.rpc.store_pb2 import KeepAliveRequest
from services.store import succession
from services.store.providers.memory import MemoryProvider
from services.store.service import Service

Start = Callable[[str, int], "asyncio.Future[Service]"]


class CutOff(MemoryProvider):
    """In which no other process is seen, and nothing can be asked; it is the store's start `incarnation`."""

    def __init__(self, incarnation: int) -> None:
        super().__init__(Path())
        self._incarnation = incarnation - 1
        self.overtaken = False

    async def occupied(self) -> str:
        return ""

    async def sure(self) -> None:
        """That cannot be asked, unless it is."""
        if self.overtaken:
            raise InternalError("another store process writes")

    def trouble(self) -> str:
        return ""

    def watch(self, ended: object) -> None:
        """It never ends by itself."""


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(succession, "_AGAIN_SECONDS", 0.05)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why processes end."""
    ends: list[str] = []
    monkeypatch.setattr("services.store.service._end_process", lambda why: ends.append(str(why)))
    return ends


@pytest.fixture
async def start(tmp_path: Path, ended: list[str]) -> AsyncIterator[Start]:
    """Of the processes of one stack one, by name, as that start of the store."""
    settings = Settings(data=tmp_path, store_provider="memory", store_processes=2)
    async with AsyncExitStack() as stack:

        async def begin(name: str, incarnation: int) -> Service:
            service = Service(settings, CutOff(incarnation), name)
            await service.start()
            stack.push_async_callback(service.stop)
            return service

        yield lambda name, incarnation: asyncio.ensure_future(begin(name, incarnation))


async def until(ended: list[str], count: int) -> None:
    async with asyncio.timeout(20):
        while len(ended) < count:
            await asyncio.sleep(0.01)


async def test_a_process_that_has_not_stood_by_tells_it(start: Start, ended: list[str]) -> None:
    """It was started while no process seemed to write, and yet one may: that is told, and answers once."""
    await start("store-1", 7)
    later = await start("store-2", 8)
    await until(ended, 1)
    assert ended == [f"another store process, {later._instance}, says that it writes by now"]
    await asyncio.sleep(0.3)
    assert len(ended) == 1


async def test_it_is_told_when_it_can_be_reached(start: Start, ended: list[str]) -> None:
    """However long after."""
    later = await start("store-2", 8)
    await asyncio.sleep(0.3)
    await start("store-1", 7)
    await until(ended, 1)
    assert later._instance in ended[0]


async def test_a_process_that_does_not_write_any_more_ends_no_other(start: Start, ended: list[str]) -> None:
    """The one that writes does not believe one that was overtaken and does not know it, and has no such member."""
    rightful = await start("store-1", 9)
    late = await start("store-2", 8)
    await until(ended, 1)
    assert ended == [f"another store process, {rightful._instance}, says that it writes by now"]
    client = StoreClient(rightful._addresses.serving)
    request = KeepAliveRequest(member="late", role=ROLE, incarnation=8)
    assert (await client.keep_alive(request)).incarnation == 9
    table = await client.leases(ROLE)
    assert {member.member for member in table.members} == {rightful._instance}
    assert late._engine.incarnation == 8
    assert len(ended) == 1
    await client.close()


async def test_a_process_that_was_overtaken_while_it_read_all_back(
    start: Start, ended: list[str], tmp_path: Path
) -> None:
    """It asks before it says that it writes: the store's name goes on leading to the other one, which hears nothing."""
    await start("store-1", 7)
    provider = CutOff(8)
    provider.overtaken = True
    settings = Settings(data=tmp_path, store_provider="memory", store_processes=2)
    late = Service(settings, provider, "store-2")
    with pytest.raises(InternalError, match="another store process writes"):
        await late.start()
    assert (tmp_path / "run/store.sock").readlink() == Path("store-1-writes.sock")
    assert not ended
    await late._server.stop()
    await late._engine.stop()
    await late._leave()
