"""Partitions asked to be elsewhere, over real processes' services and the client that the command line uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.placement import PlacementClient
from services.common.errors import NotFound, Unavailable
from services.queue.partitions.pins import Pins
from services.rpc.store_pb2 import Record, Records
from tests.support.queue_house import House


@pytest.fixture
def lease_ttl_ms() -> int:
    """Renewed several times a second: with that, processes hear who comes, and what moves."""
    return 1000


@pytest.fixture
async def client(house: House) -> AsyncIterator[PlacementClient]:
    async with PlacementClient(house.settings.address_of("store"), house.settings.address_of("router")) as client:
        yield client


async def _owners(client: PlacementClient) -> dict[int, str]:
    return {one.partition: one.owner.member for one in await client.all(8) if one.owner}


@pytest.fixture
async def patient_house(tmp_path: Path) -> AsyncIterator[House]:
    """Its processes renew their leases every four minutes, unless something happens."""
    built = House(tmp_path, lease_ttl_ms=600_000)
    await built.start()
    yield built
    await built.stop()


async def _settled(client: PlacementClient, *shares: int) -> dict[int, str]:
    async with asyncio.timeout(60):
        while True:
            owners = await _owners(client)
            members = list(owners.values())
            if sorted(members.count(member) for member in set(members)) == sorted(shares):
                return owners
            await asyncio.sleep(0.02)


async def test_move(house: House, client: PlacementClient) -> None:
    """A partition moves to the process that is asked for, and another makes up for it."""
    await house.start_queue("queue-2")
    owners = await _settled(client, 4, 4)
    number = next(number for number, member in owners.items() if member.startswith("queue-1"))
    member = await client.move([number], "queue-2")
    async with asyncio.timeout(60):
        await client.moved([number], member)
    assert member.startswith("queue-2-")
    assert (await _settled(client, 4, 4))[number] == member
    assert [one.partition for one in await client.all(8) if one.pinned] == [number]


async def test_a_move_waits_for_no_renewal(patient_house: House) -> None:
    """Both sides of a move act as soon as they hear of it."""
    settings = patient_house.settings
    await patient_house.start_queue("queue-2")
    async with PlacementClient(settings.address_of("store"), settings.address_of("router")) as client:
        member = await client.move([3], "queue-2")
        async with asyncio.timeout(60):
            await client.moved([3], member)


async def test_pins_win_over_fairness(house: House, client: PlacementClient) -> None:
    """All partitions can be with one process; given free again, they are shared."""
    await house.start_queue("queue-2")
    await _settled(client, 4, 4)
    member = await client.move(range(8), "queue-2")
    assert set((await _settled(client, 8)).values()) == {member}
    await client.unpin(range(8))
    await _settled(client, 4, 4)


async def test_pin_ends_with_its_member(house: House, client: PlacementClient) -> None:
    """What was moved to a process that is gone is served by others, and the pin is cleared with the next move."""
    await house.start_queue("queue-2")
    await _settled(client, 4, 4)
    member = await client.move([0, 1, 2, 3, 4], "queue-2")
    await client.moved([0, 1, 2, 3, 4], member)
    await house.queues.pop("queue-2").stop()
    survivor = set((await _settled(client, 8)).values())
    assert not any(one.pinned for one in await client.all(8))
    assert {await client.move([7], "queue-1")} == survivor
    assert len(await client._pins()) == 1


async def test_queues_are_counted(house: House, client: PlacementClient) -> None:
    """Each partition's queues, of the topology."""
    for number in range(20):
        await house.declare(f"queue-{number}")
    assert sum((await client.queues()).values()) == 20


async def test_which_process_to(house: House, client: PlacementClient) -> None:
    """A process is named by its name, its member id or its address; an unknown one is an error."""
    await house.start_queue("queue-2")
    member = await client.move([0], "queue-2")
    assert await client.move([0], member) == member
    assert await client.move([0], house.settings.address_of("queue-2")) == member
    with pytest.raises(NotFound, match="queue-1"):
        await client.move([0], "queue-3")


async def test_no_store(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is not there is an error after a while."""
    monkeypatch.setattr("services.common.clients.placement._DEADLINE", 0.2)
    async with PlacementClient(f"unix:{tmp_path}/store.sock", f"unix:{tmp_path}/router.sock") as client:
        with pytest.raises(Unavailable):
            await client.all(8)
        with pytest.raises(Unavailable):
            await client.queues()


async def test_records_become_pins() -> None:
    """A whole that begins anew replaces what was known; changes add to it; nothing is told half-way."""
    told: list[dict[int, str]] = []

    def record(key: int, member: str = "") -> Record:
        return Record(kind="placement", key=str(key), value=f'{{"member": "{member}"}}'.encode(), deleted=not member)

    async def messages() -> AsyncIterator[Records]:
        yield Records(records=[record(1, "a")], snapshot=True)
        yield Records(records=[record(2, "b")], snapshot=True, last=True)
        yield Records(records=[record(1), record(3, "c")], last=True)
        yield Records(snapshot=True, last=True)

    await Pins(lambda pins: told.append(dict(pins))).follow(messages())
    assert told == [{1: "a", 2: "b"}, {2: "b", 3: "c"}, {}]
