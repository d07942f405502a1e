"""Configuration and messages in two places: neither waits while the place of the other is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from services.common.disk import Room
from services.common.errors import Fenced, ResourceError
from services.rpc.store_pb2 import Fence, PutRecordsRequest, Record
from services.store.provider import Changes
from tests.support.apart import fail, two
from tests.support.store_house import TTL_MS, House, enqueue


class Gate:
    """Lets commits of a half through, or not: as if it were away."""

    def __init__(self, half: Any) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.reached = asyncio.Event()
        self._commit = half.provider.commit
        half.provider.commit = self._wait

    async def wait(self) -> None:
        """Until it is let through."""
        self.reached.set()
        await self.open.wait()

    async def _wait(self, changes: Changes) -> None:
        await self.wait()
        await self._commit(changes)


@pytest.fixture
async def house(tmp_path: Path) -> Any:
    house = House("two", tmp_path, two, lasting=True)
    await house.start()
    yield house
    await house.stop()


def declare(house: House, key: str, epoch: int = 0) -> asyncio.Future[int]:
    """A change of records; of the holder of `router`, if in an epoch of that."""
    fence = Fence(lease="router", epoch=epoch) if epoch else None
    request = PutRecordsRequest(puts=[Record(kind="queue", key=key, value=b"{}")], fence=fence)
    return asyncio.ensure_future(house.engine.records.put(request))


async def test_messages_go_on_while_configuration_is_away(house: House) -> None:
    """What is declared waits, and is there once it is back; nothing else does."""
    gate = Gate(house.provider.configuration)
    gate.open.clear()
    declared = declare(house, "a")
    await gate.reached.wait()
    await house.append(enqueue(10, 3))
    assert await house.acquire("partition/1") == {"partition/1": 1}
    assert await house.alive() == {10: [0, 1, 2]}
    assert not declared.done()
    gate.open.set()
    assert await declared
    assert house.engine.records.value_of("queue", "a") == b"{}"


async def test_configuration_goes_on_while_messages_are_away(house: House) -> None:
    """Confirms wait, and declarations do not."""
    gate = Gate(house.provider.messages)
    gate.open.clear()
    confirmed = house.append(enqueue(10, 3))
    await gate.reached.wait()
    assert await declare(house, "a")
    assert not confirmed.done()
    gate.open.set()
    await confirmed


async def test_the_next_writer_waits_for_what_the_last_one_was_allowed(house: House) -> None:
    """It is told of its lease when that is durable, and reads it; what the last one tries now is refused."""
    epoch = (await house.acquire("router", member="m1", role="router"))["router"]
    gate = Gate(house.provider.configuration)
    gate.open.clear()
    allowed = declare(house, "a", epoch)
    await gate.reached.wait()
    house.clock.now += 2 * TTL_MS / 1000
    await house.acquire("partition/1", member="m2")  # so that the first is late
    following = asyncio.ensure_future(house.acquire("router", member="m2", role="router"))
    late = declare(house, "b", epoch)
    await house.append(enqueue(10, 3))
    assert not following.done()
    gate.open.set()
    assert await following == {"partition/1": 1, "router": epoch + 1}
    assert allowed.done()
    assert house.engine.records.value_of("queue", "a") == b"{}"
    with pytest.raises(Fenced):
        await late
    assert house.engine.records.value_of("queue", "b") is None


def _reading(half: Any) -> Gate:
    """Lets no data of a half be read for a snapshot, whose moment is fixed, until it is opened."""
    gate, snapshot = Gate(half), half.provider.snapshot
    half.provider.commit = gate._commit
    gate.open.clear()

    async def waiting() -> AsyncGenerator[Changes, None]:
        async with aclosing(snapshot()) as pieces:
            yield await anext(pieces)
            await gate.wait()
            async for changes in pieces:
                yield changes

    half.provider.snapshot = waiting
    return gate


@pytest.mark.parametrize("half", ["messages", "configuration"])
async def test_a_backup_reads_beside_commits(house: House, half: str) -> None:
    """However long a place takes to give its data: only its moment is waited for."""
    await declare(house, "a")
    gate = _reading(getattr(house.provider, half))
    backup = asyncio.ensure_future(_read(house))
    await gate.reached.wait()
    await house.append(enqueue(10, 3))
    await declare(house, "b")
    gate.open.set()
    found = await backup
    assert [key for changes in found for _, key in changes.records] == ["a"]
    assert not any(changes.entries for changes in found)


@pytest.mark.parametrize("half", ["messages", "configuration"])
async def test_a_backup_while_one_is_away(house: House, half: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails soon, and says why; the other half goes on, and a backup can be made once both are there."""
    gate = Gate(getattr(house.provider, half))
    gate.open.clear()
    confirmed, declared = house.append(enqueue(10, 3)), declare(house, "a")
    await gate.reached.wait()
    with monkeypatch.context() as impatient:
        impatient.setattr("services.store.providers.apart._MOMENT_SECONDS", 0.1)
        with pytest.raises(ResourceError, match="is one of their places away"):
            await _read(house)
    await (declared if half == "messages" else confirmed)
    gate.open.set()
    await asyncio.gather(confirmed, declared)
    assert [key for changes in await _read(house) for _, key in changes.records] == ["a"]


async def _read(house: House) -> list[Changes]:
    return [changes async for changes in house.provider.snapshot()]


async def test_what_waits_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the lease table, from which health has it; publishers are not blocked for it."""
    monkeypatch.setattr("services.store.committer.RETRY_SECONDS", 0.01)
    fail(house.provider.configuration, 3)
    tables = house.engine.leases.watch("queue")
    assert (await anext(tables)).unchangeable == ""
    declared = declare(house, "a")
    told = await anext(tables)
    assert (told.unwritable, told.unchangeable) == ("", "cannot write: Crash")
    assert await declared
    assert (await anext(tables)).unchangeable == ""


@pytest.mark.parametrize(("free", "times"), [(1 << 30, 0), (1 << 20, 1)])
async def test_the_configuration_has_a_disk_of_its_own(
    house: House, monkeypatch: pytest.MonkeyPatch, free: int, times: int
) -> None:
    """Where there is little room it gives back what it can do without, however much the messages' disk has."""
    configuration, made = house.provider.configuration.provider, []

    async def make_room() -> None:
        made.append(1)

    monkeypatch.setattr(configuration, "room", lambda: Room(free, 10 << 30))
    monkeypatch.setattr(configuration, "make_room", make_room)
    await house.provider.tidy(0, 0)
    assert len(made) == times
