"""Configuration in one provider, messages in another: what is written to which, and a crash between the two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from services.common.clock import epoch_ms
from services.common.errors import InternalError, ResourceError
from services.rpc.store_pb2 import PutRecordsRequest, Record
from services.store import snapshot
from services.store.moving.copy import copy
from services.store.moving.export import export
from services.store.moving.importing import import_file
from services.store.moving.into import Moved
from services.store.moving.mark import KIND
from services.store.moving.progress import Silent
from services.store.moving.site import Site, site
from services.store.provider import Changes, LeaseRow, RecordRow
from services.store.providers.apart_halves import Half
from tests.support.apart import LEASE, QUEUE, Crash, fail, mixed, reopened, two
from tests.support.kept import everything, write_everything
from tests.support.moving import house_of
from tests.support.store_house import House, enqueue


async def test_each_has_its_own(apart: Any) -> None:
    """Records are in the one, the rest in the other, and counters of starts in both."""
    await apart.begin_incarnation()
    await apart.commit(mixed())
    messages, configuration = apart.messages.provider, apart.configuration.provider
    assert [row.kind for row in await messages.records()] == [KIND]  # the mark
    assert QUEUE in await configuration.records()
    assert await apart.records() == [QUEUE]
    assert (await messages.leases(), await configuration.leases()) == ([LEASE], [])
    assert await messages.begin_incarnation() == await configuration.begin_incarnation() == 2


async def test_what_concerns_one_is_written_to_that_one(apart: Any) -> None:
    """A group without records does not touch the configuration, and one of records alone not the messages."""
    await apart.begin_incarnation()
    messages, configuration = fail(apart.messages, 0), fail(apart.configuration, 0)
    await apart.commit(Changes(leases={"partition/1": LEASE}))
    assert (len(messages), len(configuration)) == (1, 0)
    await apart.commit(Changes(records={("queue", "a"): QUEUE}))
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
    assert (await apart.records(), await apart.leases()) == ([QUEUE], [LEASE])


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
    assert await again.leases() == ([] if half == "messages" else [LEASE])
    await again.commit(mixed())
    assert (await again.records(), await again.leases()) == ([QUEUE], [LEASE])
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


async def test_a_backup_has_the_greater_count(apart: Any) -> None:
    """After a crash while a start was counted, by the configuration alone: versions that it gave do not come again."""
    await apart.begin_incarnation()
    for _ in range(3):
        await apart.configuration.provider.begin_incarnation()
    found = [changes async for changes in apart.snapshot()]
    assert [changes.incarnation for changes in found] == [0] * (len(found) - 1) + [4]


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


_MANY = 1000


class Dying:
    """Commits to halves, of which the process survives `left`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = _MANY
        commit = Half.commit

        async def counted(half: Half, changes: Changes) -> None:
            if not self.left:
                raise Crash
            self.left -= 1
            await commit(half, changes)

        monkeypatch.setattr(Half, "commit", counted)


async def _filled(folder: Path) -> Site:
    source = site(str(folder))
    house = house_of(source)
    await house.start()
    await write_everything(house)
    await house.stop()
    return source


async def _survives_each(tmp_path: Path, dying: Dying, move: Callable[[Site], Awaitable[Moved]]) -> list[Moved]:
    """Killed after each number of commits to a half: nothing of it is served, and done again it is all there."""
    moved: list[Moved] = []
    for left in range(_MANY):
        destination = site(str(tmp_path / f"two-{left}"), "sqlite:")
        dying.left = left
        try:
            await move(destination)
        except ResourceError:
            dying.left = _MANY
            if left > 2:  # the marks of the halves, and that of the move
                with pytest.raises(InternalError, match="not whole"):
                    await house_of(destination).start()
            moved.append(await move(destination))
        else:
            break
    return moved


async def test_a_copy_that_is_killed_between_the_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each commit to one of them: no store starts on it; done again it goes on, and all is there once."""
    monkeypatch.setattr(snapshot, "_PIECE_BYTES", 900)
    source, dying = await _filled(tmp_path / "source"), Dying(monkeypatch)
    moved = await _survives_each(tmp_path, dying, lambda destination: copy(source, destination, Silent()))
    assert len(moved) > 8
    assert moved[-1].resumed > 2
    async with source.source() as one:
        before = await everything(one)
    dying.left = _MANY
    for left in range(len(moved)):
        async with site(str(tmp_path / f"two-{left}"), "sqlite:").source() as other:
            assert await everything(other) == before


async def test_an_import_that_is_killed_between_the_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, of the little that is one piece, and of the last commit, with the numbers of the next generation."""
    source, file = await _filled(tmp_path / "source"), tmp_path / "file"
    await export(source, file, Silent())
    dying = Dying(monkeypatch)

    async def move(destination: Site) -> Moved:
        return (await import_file(file, destination, 8, epoch_ms(), Silent())).moved

    moved = await _survives_each(tmp_path, dying, move)
    assert len(moved) > 5
    assert {each.messages for each in moved} == {7}
