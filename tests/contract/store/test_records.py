"""Configuration records and origins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from services.common.errors import Fenced
from services.rpc.store_pb2 import Fence, PutRecordsRequest, Record
from services.rpc.store_pb2 import Records as RecordsMessage
from services.store import records as records_module
from tests.support.store_house import House


async def put(house: House, *puts: Record, deletes: Iterable[Record] = (), fence: Fence | None = None) -> int:
    return await house.engine.records.put(PutRecordsRequest(puts=puts, deletes=deletes, fence=fence))


def record(key: str, value: str = "", kind: str = "queue", *, transient: bool = False) -> Record:
    return Record(kind=kind, key=key, value=value.encode(), transient=transient)


def listed(house: House, *kinds: str) -> dict[str, str]:
    return {item.key: item.value.decode() for part in house.engine.records.snapshot(kinds) for item in part.records}


async def test_records_survive_and_transient_ones_do_not(house: House) -> None:
    """After a restart the durable records are there, with their versions; versions go on growing."""
    first = await put(house, record("a", "1"), record("t", "1", transient=True), record("u", "1", kind="user"))
    second = await put(house, record("a", "2"), record("b", "1"), deletes=[record("u", kind="user")])
    assert second > first
    assert listed(house, "queue") == {"a": "2", "t": "1", "b": "1"}
    await house.restart()
    assert listed(house) == {"a": "2", "b": "1"}
    assert await put(house, record("c", "1")) > second


async def test_a_transient_record_takes_the_place_of_a_durable_one(house: House) -> None:
    """And the other way round; what is on disk follows."""
    await put(house, record("a", "1"), record("b", "1", transient=True))
    await put(house, record("a", "2", transient=True), record("b", "2"))
    assert listed(house) == {"a": "2", "b": "2"}
    await house.restart()
    assert listed(house) == {"b": "2"}


async def test_old_fences_are_refused(house: House) -> None:
    """A writer whose lease has a newer epoch changes nothing."""
    await house.acquire("router", role="router")
    await put(house, record("a"), fence=Fence(lease="router", epoch=1))
    with pytest.raises(Fenced):
        await put(house, record("b"), fence=Fence(lease="router", epoch=0))
    assert listed(house) == {"a": ""}


async def test_a_watch_is_a_snapshot_and_then_changes(house: House) -> None:
    """Of the kinds asked for, deletions included, nothing before it is on disk."""
    await put(house, record("a", "1"), record("u", kind="user"))
    watch = house.engine.records.watch(["queue"])
    snapshot = await anext(watch)
    assert (snapshot.snapshot, snapshot.last, [item.key for item in snapshot.records]) == (True, True, ["a"])
    await put(house, record("u2", kind="user"))
    await put(house, record("b", "1"))
    version = await put(house, record("b", "2"), deletes=[record("a")])
    change = await anext(watch)
    assert not change.snapshot
    assert [(item.key, item.value, item.deleted) for item in change.records] == [("b", b"2", False), ("a", b"", True)]
    assert change.version == version
    assert all(item.version == version for item in change.records)


async def test_an_empty_snapshot_is_said(house: House) -> None:
    """A watcher of nothing learns that there is nothing."""
    assert (await anext(house.engine.records.watch(["queue"]))).last


async def test_large_snapshots_come_in_parts(house: House) -> None:
    """Only the last part says so."""
    await put(house, *(record(str(number)) for number in range(2500)))
    parts = list(house.engine.records.snapshot([]))
    assert [(part.snapshot, part.last) for part in parts] == [(True, False), (True, False), (True, True)]
    assert sum(len(part.records) for part in parts) == 2500


async def test_a_watcher_far_behind_starts_over(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletions are remembered only so long; who missed some gets a snapshot."""
    monkeypatch.setattr(records_module, "TOMBSTONES", 2)
    await put(house, *(record(str(number)) for number in range(5)))
    watch = house.engine.records.watch([])
    await anext(watch)
    for number in range(4):
        await put(house, deletes=[record(str(number))])
    message: RecordsMessage = await asyncio.wait_for(anext(watch), 1)
    assert (message.snapshot, [item.key for item in message.records]) == (True, ["4"])


async def test_origins_are_never_given_twice(house: House) -> None:
    """Not by concurrent callers and not after a restart; every start is an incarnation."""
    given = await asyncio.gather(*(house.engine.origins.allocate() for _ in range(20)))
    incarnation = house.engine.incarnation
    await house.restart()
    given.append(await house.engine.origins.allocate())
    assert given == list(range(given[0], given[0] + 21))
    assert house.engine.incarnation == incarnation + 1
