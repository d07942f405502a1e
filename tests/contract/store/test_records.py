"""Configuration records and origins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from services.common.errors import Fenced, Overtaken
from services.rpc.store_pb2 import Fence, PutRecordsRequest, Record, Unchanged
from services.rpc.store_pb2 import Records as RecordsMessage
from services.store import records as records_module
from tests.support.store_house import House


async def put(
    house: House,
    *puts: Record,
    deletes: Iterable[Record] = (),
    fence: Fence | None = None,
    unchanged: Iterable[Unchanged] = (),
) -> int:
    request = PutRecordsRequest(puts=puts, deletes=deletes, fence=fence, unchanged=unchanged)
    return await house.engine.records.put(request)


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


async def test_what_was_to_be_unchanged(house: House) -> None:
    """A kind, or one key of it, since what was read: what rests on something else changes nothing."""
    seen = await put(house, record("a", "1"), record("b", "1"))
    of_kind, of_a = Unchanged(kind="queue", version=seen), Unchanged(kind="queue", key="a", version=seen)
    of_new = Unchanged(kind="queue", key="new", version=seen)
    await put(house, record("u", kind="user"), unchanged=[of_kind])
    await put(house, deletes=[record("none")])
    await put(house, record("b", "2"), unchanged=[of_kind])
    with pytest.raises(Overtaken, match="queue was changed"):
        await put(house, record("x"), unchanged=[of_kind])
    await put(house, record("b", "3"), unchanged=[of_a])
    await put(house, deletes=[record("a")], unchanged=[of_a])
    with pytest.raises(Overtaken, match="queue a was changed"):
        await put(house, record("a", "2"), record("x"), unchanged=[of_a])
    await put(house, record("new"), unchanged=[of_new])
    assert listed(house, "queue") == {"b": "3", "new": ""}
    with pytest.raises(Overtaken):
        await put(house, record("new", "2"), unchanged=[of_new])


async def test_what_was_deleted_and_is_forgotten(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts as changed where its kind was: a caller that read before that reads again."""
    monkeypatch.setattr(records_module, "TOMBSTONES", 1)
    seen = await put(house, *(record(str(number)) for number in range(3)))
    for number in range(3):
        await put(house, deletes=[record(str(number))])
    for kind, fits in (("queue", False), ("user", True)):
        work = put(house, record("0", kind=kind), unchanged=[Unchanged(kind=kind, key="0", version=seen)])
        [done] = await asyncio.gather(work, return_exceptions=True)
        assert isinstance(done, int) is fits


async def test_of_two_in_one_group_the_second_is_overtaken(house: House) -> None:
    """Though nothing of the first is on disk when it is asked."""
    seen = await put(house, record("a", "1"))
    of_a = Unchanged(kind="queue", key="a", version=seen)
    both = await asyncio.gather(
        put(house, record("a", "2"), unchanged=[of_a]),
        put(house, record("a", "3"), unchanged=[of_a]),
        return_exceptions=True,
    )
    assert [type(each) for each in both] == [int, Overtaken]
    assert listed(house) == {"a": "2"}


async def test_what_was_read_before_a_restart_is_read_again(house: House) -> None:
    """What was transient is gone since: nothing that rests on it counts. Data from before counts as it was."""
    seen = await put(house, record("a", "1"), record("t", "1", transient=True))
    await house.restart()
    with pytest.raises(Overtaken):
        await put(house, record("a", "2"), unchanged=[Unchanged(kind="queue", key="a", version=seen)])
    again = next(iter(house.engine.records.snapshot(["queue"]))).version
    await put(house, record("a", "3"), unchanged=[Unchanged(kind="queue", key="a", version=again)])
    assert listed(house) == {"a": "3"}


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


async def test_nobody_is_woken_by_what_it_does_not_watch(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it look through that when there is something for it, or begin anew for deletions of other kinds."""
    monkeypatch.setattr(records_module, "TOMBSTONES", 1)
    await put(house, record("a", "1"))
    watch = house.engine.records.watch(["queue"])
    await anext(watch)
    change = asyncio.ensure_future(anext(watch))
    looked: list[int] = []
    since = house.engine.records._since
    monkeypatch.setattr(
        house.engine.records, "_since", lambda version, kinds: looked.append(version) or since(version, kinds)
    )
    for number in range(5):
        await put(house, record(str(number), kind="user"))
        version = await put(house, deletes=[record(str(number), kind="user")])
    assert not looked
    await put(house, record("b"))
    message: RecordsMessage = await change
    assert looked == [version]
    assert (message.snapshot, [item.key for item in message.records]) == (False, ["b"])


async def test_who_watches_several_kinds_hears_each(house: House) -> None:
    """One message for a change of both, and what was changed meanwhile of other kinds is not looked through."""
    watch = house.engine.records.watch(["queue", "user"])
    assert (await anext(watch)).snapshot
    await put(house, record("p", kind="policy"))
    version = await put(house, record("a"), record("u", kind="user"))
    change = await anext(watch)
    assert [item.key for item in change.records] == ["a", "u"]
    assert (change.version, change.snapshot) == (version, False)
    await put(house, record("b"))
    assert [item.key for item in (await anext(watch)).records] == ["b"]
    await watch.aclose()


async def test_who_asked_may_be_gone(house: House) -> None:
    """What it asked for is done, or refused, and the next one is answered."""
    await house.acquire("router", role="router")
    old = Fence(lease="router", epoch=0)
    asked = [asyncio.ensure_future(put(house, record("a"))), asyncio.ensure_future(put(house, record("x"), fence=old))]
    await asyncio.sleep(0)
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await put(house, record("b"))
    assert listed(house, "queue") == {"a": "", "b": ""}


async def test_an_empty_snapshot_is_said(house: House) -> None:
    """A watcher of nothing learns that there is nothing."""
    assert (await anext(house.engine.records.watch(["queue"]))).last


async def test_large_snapshots_come_in_parts(house: House) -> None:
    """Only the last part says so."""
    await put(house, *(record(str(number)) for number in range(2500)))
    parts = list(house.engine.records.snapshot([]))
    assert [(part.snapshot, part.last) for part in parts] == [(True, False), (True, False), (True, True)]
    assert sum(len(part.records) for part in parts) == 2500


async def test_some_kinds_are_listed_alone(house: House) -> None:
    """By their last change, whatever became of them before; a restart makes no difference."""
    await put(house, record("a", "1"), record("b", "1"), record("u", "1", kind="user"), record("x", kind="port"))
    await put(house, record("a", "2"), deletes=[record("b"), record("x", kind="port")])
    await put(house, record("b", "3"))
    await put(house, record("u", "4", kind="user"))
    for _ in range(2):
        assert list(listed(house, "user", "queue", "port").items()) == [("a", "2"), ("b", "3"), ("u", "4")]
        assert list(listed(house)) == ["a", "b", "u"]
        assert (listed(house, "queue"), listed(house, "port")) == ({"a": "2", "b": "3"}, {})
        assert house.engine.records.value_of("port", "x") is None
        await house.restart()


async def test_a_watcher_far_behind_starts_over(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletions are remembered for a time only; a watcher that missed some gets a snapshot."""
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
