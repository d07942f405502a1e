"""Configuration in one provider, messages in another: what is written to which, and a crash between the two."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.common.config import Settings
from services.common.disk import Room
from services.common.errors import InternalError
from services.rpc.store_pb2 import PutRecordsRequest, Record
from services.store.choice import Choice, choose, with_configuration
from services.store.engine import Engine
from services.store.folder import DataFolder
from services.store.moving.mark import KEY, KIND, Mark, mark_in
from services.store.provider import Changes, LeaseRow, RecordRow
from services.store.providers.apart import Apart
from services.store.providers.sqlite import SQLiteProvider
from tests.support.store_house import TTL_MS, House, Ticking, enqueue

_QUEUE = RecordRow("queue", "a", b"{}", 1)
_LEASE = LeaseRow("partition/1", 1, "m1", "queue")


class Crash(Exception):
    """The process is gone."""


def two(folder: Path) -> Any:
    """Both in files."""
    return with_configuration(Choice("sqlite"), "sqlite:", "it").make(folder)


def mixed() -> Changes:
    """A group with a record and a lease in it."""
    return Changes(records={("queue", "a"): _QUEUE}, leases={"partition/1": _LEASE})


def fail(half: Any, times: int = 1) -> list[Changes]:
    """The next commits to the half fail; gives those that reach the provider, failed or not."""
    commit, seen = half.provider.commit, []

    async def failing(changes: Changes) -> None:
        seen.append(changes)
        if len(seen) <= times:
            raise Crash
        await commit(changes)

    half.provider.commit = failing
    return seen


async def reopened(folder: Path) -> Any:
    """Another process, on what is on disk."""
    provider = two(folder)
    await provider.open()
    return provider


@pytest.fixture
async def apart(tmp_path: Path) -> Any:
    provider = await reopened(tmp_path)
    yield provider
    await provider.close()


async def test_each_has_its_own(apart: Any) -> None:
    """Records are in the one, the rest in the other, and counters of starts in both."""
    await apart.begin_incarnation()
    await apart.commit(mixed())
    messages, configuration = apart.messages.provider, apart.configuration.provider
    assert [row.kind for row in await messages.records()] == [KIND]  # the mark
    assert _QUEUE in await configuration.records()
    assert await apart.records() == [_QUEUE]
    assert (await messages.leases(), await configuration.leases()) == ([_LEASE], [])
    assert await messages.begin_incarnation() == await configuration.begin_incarnation() == 2


async def test_what_concerns_one_is_written_to_that_one(apart: Any) -> None:
    """A group without records does not touch the configuration, and one of records alone not the messages."""
    await apart.begin_incarnation()
    messages, configuration = fail(apart.messages, 0), fail(apart.configuration, 0)
    await apart.commit(Changes(leases={"partition/1": _LEASE}))
    assert (len(messages), len(configuration)) == (1, 0)
    await apart.commit(Changes(records={("queue", "a"): _QUEUE}))
    assert (len(messages), len(configuration)) == (1, 1)


@pytest.mark.parametrize("half", ["messages", "configuration"])
async def test_a_group_that_fails_goes_on_with_the_rest(apart: Any, half: str) -> None:
    """Tried again it writes what is missing, as the same object, and what is there not a second time."""
    await apart.begin_incarnation()
    group = mixed()
    failed = fail(getattr(apart, half), 2)
    other = fail(apart.configuration if half == "messages" else apart.messages, 0)
    for _ in range(2):
        with pytest.raises(Crash):
            await apart.commit(group)
    await apart.commit(group)
    assert len(failed) == 3
    assert failed[0] is failed[1] is failed[2]
    assert len(other) == 1
    assert (await apart.records(), await apart.leases()) == ([_QUEUE], [_LEASE])


async def test_another_group_after_one_that_was_given_up(apart: Any) -> None:
    """It is whole."""
    await apart.begin_incarnation()
    fail(apart.configuration)
    with pytest.raises(Crash):
        await apart.commit(mixed())
    other = RecordRow("queue", "b", b"{}", 2)
    await apart.commit(Changes(records={("queue", "b"): other}, leases={"router": LeaseRow("router", 1)}))
    assert await apart.records() == [other]
    assert {row.name for row in await apart.leases()} == {"partition/1", "router"}


@pytest.mark.parametrize("half", ["messages", "configuration"])
async def test_a_crash_between_the_two(tmp_path: Path, half: str) -> None:
    """Messages are there without what a record says of them, never a record without its messages."""
    provider = await reopened(tmp_path)
    await provider.begin_incarnation()
    fail(getattr(provider, half))
    with pytest.raises(Crash):
        await provider.commit(mixed())
    await provider.close()
    again = await reopened(tmp_path)
    assert await again.records() == []
    assert await again.leases() == ([] if half == "messages" else [_LEASE])
    await again.commit(mixed())
    assert (await again.records(), await again.leases()) == ([_QUEUE], [_LEASE])
    await again.close()


@pytest.mark.parametrize("half", ["messages", "configuration"])
async def test_a_crash_while_they_are_joined(tmp_path: Path, half: str) -> None:
    """The next start goes on with the mark that is missing."""
    provider = await reopened(tmp_path)
    fail(getattr(provider, half))
    with pytest.raises(Crash):
        await provider.begin_incarnation()
    await provider.close()
    again = await reopened(tmp_path)
    assert await again.begin_incarnation() == 1
    marks = [mark_in(await each.provider.records()) for each in (again.messages, again.configuration)]
    assert [mark.holds for mark in marks if mark] == ["messages", "configuration"]
    assert len({mark.pair for mark in marks if mark}) == 1
    await again.close()


@pytest.mark.parametrize("half", ["messages", "configuration"])
async def test_a_crash_between_the_counts(tmp_path: Path, half: str) -> None:
    """A start that was counted by one alone: the next number is greater than any that was given."""
    provider = await reopened(tmp_path)
    assert await provider.begin_incarnation() == 1
    await getattr(provider, half).provider.begin_incarnation()
    await provider.close()
    again = await reopened(tmp_path)
    assert await again.begin_incarnation() == 3
    assert await again.begin_incarnation() == 4
    await again.close()


async def test_nothing_is_written_by_opening(tmp_path: Path) -> None:
    """Two that were opened by mistake are as empty as before."""
    provider = await reopened(tmp_path)
    assert await provider.messages.provider.records() == await provider.configuration.provider.records() == []
    await provider.close()


@pytest.mark.parametrize(("folder", "holds"), [(".", "messages"), ("configuration", "configuration")])
async def test_a_half_is_not_served(tmp_path: Path, folder: str, holds: str) -> None:
    """Without the setting the store does not start on it, and says which."""
    provider = await reopened(tmp_path)
    await provider.begin_incarnation()
    await provider.close()
    with pytest.raises(InternalError, match=f"only the {holds} of a store.*HOPLINE_STORE_CONFIGURATION_URL"):
        await Engine(SQLiteProvider(tmp_path / folder), TTL_MS, Ticking(), lambda _: None).start()


async def test_a_former_release_refuses_a_half(tmp_path: Path) -> None:
    """It reads of the mark what it knows: that the store is not whole."""
    provider = await reopened(tmp_path)
    await provider.begin_incarnation()
    for half in (provider.messages, provider.configuration):
        (row,) = await half.provider.records()
        assert (row.kind, row.key) == (KIND, KEY)
        assert "elsewhere (HOPLINE_STORE_CONFIGURATION_URL)" in json.loads(row.value)["source"]
    await provider.close()


async def refused(folder: Path) -> str:
    with pytest.raises(InternalError) as found:
        await reopened(folder)
    return found.value.text


async def made(folder: Path, provider: Callable[[Path], Any]) -> None:
    one = provider(folder)
    await one.open()
    await one.begin_incarnation()
    await one.commit(mixed())
    await one.close()


async def test_a_whole_store_is_no_half(tmp_path: Path) -> None:
    """Where the setting is added to one that has run, it says what to do."""
    await made(tmp_path, SQLiteProvider)
    assert "has a whole store" in (said := await refused(tmp_path))
    assert "hopline store copy" in said


async def test_two_of_two_stores(tmp_path: Path) -> None:
    """Are named, and where each belongs."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        DataFolder(folder).make()
    await made(one, two)
    await made(other, two)
    (other / "configuration").rename(tmp_path / "aside")
    (one / "configuration").rename(other / "configuration")
    said = await refused(other)
    assert "are of two stores" in said
    assert f"sqlite:{one}" in said
    assert f"sqlite:{other}/configuration" in said


async def test_exchanged(tmp_path: Path) -> None:
    """Configuration where messages are to be is named."""
    await made(tmp_path, two)
    (tmp_path / "configuration" / "hopline.db").rename(tmp_path / "aside")
    (tmp_path / "hopline.db").rename(tmp_path / "configuration" / "hopline.db")
    (tmp_path / "aside").rename(tmp_path / "hopline.db")
    assert "is to be for the messages, and has the configuration of a store" in await refused(tmp_path)


@pytest.mark.parametrize(("lost", "kept"), [(".", "configuration"), ("configuration", "messages")])
async def test_one_of_them_is_lost(tmp_path: Path, lost: str, kept: str) -> None:
    """A store does not start with an empty one in its place: it would show queues without messages, or none."""
    await made(tmp_path, two)
    (tmp_path / lost / "hopline.db").unlink()
    said = await refused(tmp_path)
    assert f"the {kept} in sqlite:" in said
    assert "has nothing of it" in said
    assert "backup" in said


async def test_messages_in_memory(tmp_path: Path) -> None:
    """Configuration outlives the process; each start has other messages, and nothing is missed."""
    chosen = with_configuration(Choice("memory"), "sqlite:", "it")
    await made(tmp_path, chosen.make)
    again = chosen.make(tmp_path)
    await again.open()
    assert (await again.records(), await again.leases()) == ([_QUEUE], [])
    await again.close()


async def test_a_backup_is_of_one_moment(apart: Any) -> None:
    """What is committed after the first step is in neither half of it."""
    await apart.begin_incarnation()
    await apart.commit(mixed())
    pieces = apart.snapshot()
    found = [await anext(pieces)]
    await apart.commit(
        Changes(records={("queue", "b"): RecordRow("queue", "b", b"{}", 2)}, leases={"router": LeaseRow("router", 1)})
    )
    found += [changes async for changes in pieces]
    assert [key for changes in found for key in changes.records] == [("queue", "a")]
    assert [name for changes in found for name in changes.leases] == ["partition/1"]
    assert found[-1].incarnation == 1


async def test_the_mark_of_a_move_is_that_of_both(apart: Any) -> None:
    """It is written and read as in any provider, beside the mark of each half."""
    mark = Mark(source="a file", pieces=3)
    await apart.commit(Changes(records={(KIND, KEY): mark.row()}))
    assert mark_in(await apart.records()) == mark
    held = mark_in(await apart.configuration.provider.records())
    assert held is not None
    assert held.holds == "configuration"
    await apart.commit(Changes(records={(KIND, KEY): None}))
    assert await apart.records() == []


async def test_what_is_given(apart: Any, tmp_path: Path) -> None:
    """The greatest numbers of both, read without opening them."""
    await apart.begin_incarnation()
    await apart.commit(mixed())
    found = await two(tmp_path).given()
    assert (set(found.records), set(found.leases), found.incarnation) == ({("queue", "a")}, {"partition/1"}, 1)


async def test_a_store_that_is_restarted(tmp_path: Path) -> None:
    """As one to all others: a record, a lease and messages come back, and versions grow."""
    house = House("two", tmp_path, two, lasting=True)
    await house.start()
    before = await house.engine.records.put(PutRecordsRequest(puts=[Record(kind="queue", key="a", value=b"{}")]))
    epoch = (await house.acquire("partition/1"))["partition/1"]
    await house.append(enqueue(10, 3))
    await house.restart()
    assert house.engine.records.value_of("queue", "a") == b"{}"
    assert house.engine.epochs["partition/1"] == epoch
    assert await house.alive() == {10: [0, 1, 2]}
    assert await house.engine.records.put(PutRecordsRequest(puts=[Record(kind="queue", key="b")])) > before
    await house.stop()


_PG = "postgresql://hopline:tell-nobody@db.example/hopline"


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"store_configuration_url": _PG}, "postgres+sqlite"),
        ({"store_configuration_url": "sqlite:", "store_url": "nats://n1/S"}, "sqlite+jetstream"),
        ({"store_configuration_url": "nats://n1/C", "store_url": "nats://n1/S"}, "jetstream+jetstream"),
        ({"store_configuration_url": "sqlite:", "store_provider": "memory"}, "sqlite+memory"),
    ],
)
def test_by_settings(settings: dict[str, Any], shown: str, tmp_path: Path) -> None:
    """Any two; nothing of what may be a secret is shown."""
    chosen = choose(Settings(**settings))
    assert chosen.shown == shown
    assert isinstance(chosen.make(tmp_path), Apart)
    assert "tell-nobody" not in chosen.place(tmp_path)


@pytest.mark.parametrize("url", ["mysql://root:tell-nobody@db/x", "sqlite://somewhere", "memory:"])
def test_no_url_of_a_configuration(url: str) -> None:
    """It is said which setting, and which there are."""
    with pytest.raises(InternalError, match=r"HOPLINE_STORE_CONFIGURATION_URL is no URL.*or sqlite:") as found:
        choose(Settings(store_configuration_url=url))
    assert "tell-nobody" not in found.value.text


def test_both_in_one_place() -> None:
    """That is no two."""
    with pytest.raises(InternalError, match="HOPLINE_STORE_CONFIGURATION_URL is where the messages are"):
        choose(Settings(store_configuration_url=_PG, store_url=_PG))


async def test_room_is_that_of_the_disk_with_less(apart: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishers wait in time for the smaller one."""
    for half, free in ((apart.messages, 2000), (apart.configuration, 1000)):
        monkeypatch.setattr(half.provider, "room", lambda free=free: Room(free, 5000))
    assert apart.room().free == 1000


async def test_memory_has_no_disk(tmp_path: Path) -> None:
    """The room is that of the file then."""
    provider = with_configuration(Choice("memory"), "sqlite:", "it").make(tmp_path)
    await provider.open()
    assert provider.room() is not None
    await provider.close()
