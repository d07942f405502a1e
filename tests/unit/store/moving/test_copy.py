"""A store becomes another provider's, as it is; killed at any piece it is done again from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.common.errors import BrokerError, InternalError, PreconditionFailed
from services.rpc.store_pb2 import EntryBatch, PutRecordsRequest, Record
from services.store import snapshot
from services.store.folder import DataFolder
from services.store.moving.copy import copy
from services.store.moving.progress import Silent
from services.store.moving.site import Site, site
from services.store.provider import Changes
from tests.support.kept import everything
from tests.support.moving import KINDS, house_of
from tests.support.store_house import dequeue, enqueue

Place = Callable[[str], Site]
Filled = Callable[[str], Any]
TOLD = Silent()


async def contents(where: Site) -> dict[str, Any]:
    async with where.source() as provider:
        return await everything(provider)


class Killed(BaseException):
    """As if the process had ended here."""


class Dying:
    """Providers of a kind that commit so many times, and no more; how often they have is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: Site, times: int) -> None:
        self.left = times
        self.committed = 0
        kind = type(where.choice.make(where.folder or Path()))
        commit = kind.commit

        async def counted(provider: Any, changes: Changes) -> None:
            if self.left == 0:
                raise Killed
            self.left -= 1
            self.committed += 1
            await commit(provider, changes)

        monkeypatch.setattr(kind, "commit", counted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("to", KINDS)
async def test_between_any_two(place: Place, filled: Filled, kind: str, to: str) -> None:
    """All that a store would read back is there, counters and leases too, and the source has it still."""
    source, destination = await filled(kind), place(to)
    before = await contents(source)
    moved = await copy(source, destination, TOLD)
    assert await contents(destination) == before == await contents(source)
    # Of the first batch two are gone, of another seven of eight.
    assert (moved.messages, moved.queues, moved.records) == (2 + 3 + 1 + 1, 1, 2)


@pytest.mark.parametrize("to", KINDS)
async def test_a_store_goes_on_with_it(place: Place, filled: Filled, to: str) -> None:
    """Leases are held as before, at their epochs: to running processes it is a store that has restarted."""
    source, destination = await filled("sqlite"), place(to)
    await copy(source, destination, TOLD)
    house = house_of(destination)
    await house.start()
    assert await house.acquire("partition/1") == {"partition/1": 1, "partition/2": 1, "router": 1}
    assert sorted(await house.alive(1)) == [10, 30, 40]
    await house.append(enqueue(50, 2))
    assert house.failures == []
    await house.stop()


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("kind", KINDS)
async def test_killed_at_any_piece(
    place: Place, filled: Filled, monkeypatch: pytest.MonkeyPatch, kind: str, to: str
) -> None:
    """Pieces that are there are not written again; until it is complete, no store starts on it."""
    monkeypatch.setattr(snapshot, "_PIECE_BYTES", 100)
    source, destination = await filled(kind), place(to)
    before = await contents(source)
    for times in (1, 2, 5):
        with monkeypatch.context() as patched:
            Dying(patched, destination, times)
            with pytest.raises(Killed):
                await copy(source, destination, TOLD)
    with pytest.raises(InternalError, match=r"not whole: it was being made of .*; do that again"):
        await house_of(destination).start()
    with monkeypatch.context() as patched:
        dying = Dying(patched, destination, 1000)
        moved = await copy(source, destination, TOLD)
    assert moved.resumed == 1 + 2 + 5 - 1  # the first commit was that it is not whole
    everything_at_once = Dying(monkeypatch, destination, 1000)
    await copy(source, place(to), TOLD)
    assert dying.committed == everything_at_once.committed - moved.resumed - 1
    assert await contents(destination) == before


async def test_done_again_with_another_store(place: Place, filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of one and half of another is refused: of another place, and of one that has changed since."""
    monkeypatch.setattr(snapshot, "_PIECE_BYTES", 100)
    source, destination = await filled("sqlite"), place("sqlite")
    with monkeypatch.context() as patched:
        Dying(patched, destination, 3)
        with pytest.raises(Killed):
            await copy(source, destination, TOLD)
    with pytest.raises(PreconditionFailed, match=r"it has a part of sqlite:.*, and not of sqlite:"):
        await copy(await filled("sqlite"), destination, TOLD)
    house = house_of(source)
    await house.start()
    await house.append(dequeue(10, 0, 3), writer=99)
    await house.stop()
    with pytest.raises(PreconditionFailed, match="has changed since this was begun"):
        await copy(source, destination, TOLD)


@pytest.mark.parametrize("to", KINDS)
async def test_not_into_a_store(filled: Filled, to: str) -> None:
    """What has a store already is left as it is."""
    source, destination = await filled("sqlite"), await filled(to)
    before = await contents(destination)
    with pytest.raises(PreconditionFailed, match="there is a store already: nothing was written"):
        await copy(source, destination, TOLD)
    assert await contents(destination) == before


@pytest.mark.parametrize("served", ["source", "destination"])
async def test_not_while_it_is_served(place: Place, filled: Filled, served: str) -> None:
    """A folder whose store runs is refused on either side."""
    source, destination = await filled("sqlite"), place("sqlite")
    folder = {"source": source, "destination": destination}[served].folder
    assert folder
    with DataFolder(folder).held(), pytest.raises(InternalError, match="another store runs on"):
        await copy(source, destination, TOLD)


@pytest.mark.parametrize("served", ["source", "destination"])
async def test_not_while_a_database_is_served(place: Place, filled: Filled, served: str) -> None:
    """A database to which a store writes is refused on either side, and the store is named; it goes on writing."""
    source, destination = await filled("postgres"), place("postgres")
    house = house_of({"source": source, "destination": destination}[served])
    await house.start()
    with pytest.raises(InternalError, match=r"another store process \(process \d+ on .*\) writes to postgresql://"):
        await copy(source, destination, TOLD)
    await house.append(enqueue(70, 1))
    assert house.failures == []
    await house.stop()


async def test_to_itself(filled: Filled) -> None:
    """The same place twice is said to be that."""
    source = await filled("sqlite")
    with pytest.raises(PreconditionFailed, match="cannot be copied to itself"):
        await copy(source, source, TOLD)


async def test_into_its_own_files(filled: Filled) -> None:
    """A store is not parted where it is: it is said so, and it is as it was."""
    source = await filled("sqlite")
    before = await contents(source)
    with pytest.raises(PreconditionFailed, match="cannot be copied into its own files"):
        await copy(source, site(str(source), "sqlite:"), TOLD)
    assert await contents(source) == before


async def test_beside_it(place: Place, filled: Filled) -> None:
    """Messages go to a database, and configuration beside the file that both were in; and back."""
    source, url = await filled("sqlite"), place("postgres")
    before = await contents(source)
    assert source.folder
    beside = site(url.choice.url, "sqlite:", source.folder)
    await copy(source, beside, TOLD)
    assert await contents(beside) == before == await contents(source)
    (source.folder / "hopline.db").unlink()
    await copy(beside, source, TOLD)
    assert await contents(source) == before


async def test_of_none(place: Place, tmp_path: Path) -> None:
    """A folder without a store is named, and not made; nor is a database without one anything to copy."""
    nowhere = tmp_path / "nowhere"
    with pytest.raises(PreconditionFailed, match=f"there is no store in {nowhere}"):
        await copy(site(str(nowhere)), place("sqlite"), TOLD)
    assert not nowhere.exists()
    with pytest.raises(PreconditionFailed, match="there is no store in postgresql://"):
        await copy(place("postgres"), place("sqlite"), TOLD)


async def test_of_one_that_is_not_whole(place: Place, filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that has ended half-way is not copied on."""
    source, half = await filled("sqlite"), place("sqlite")
    with monkeypatch.context() as patched:
        Dying(patched, half, 1)
        with pytest.raises(Killed):
            await copy(source, half, TOLD)
    with pytest.raises(PreconditionFailed, match="this store is not whole"):
        await copy(half, place("sqlite"), TOLD)


@pytest.mark.parametrize(
    ("lose", "says"),
    [
        (lambda changes: changes.dequeues.clear(), r"queue 1: 7 messages \(\w+\), and there 16 messages"),
        (lambda changes: changes.contents.update(dict.fromkeys(changes.contents, b"")), r"queue 1: 7 messages"),
        (lambda changes: changes.records.pop(("user", "a"), None), r"records: 2, and there 1"),
        (lambda changes: changes.delivered.clear(), r"delivered: 1, and there 0"),
        (lambda changes: changes.leases.clear(), r"leases: 3, and there 0"),
    ],
)
async def test_what_is_not_as_it_was_is_found(
    place: Place, filled: Filled, monkeypatch: pytest.MonkeyPatch, lose: Callable[[Changes], Any], says: str
) -> None:
    """A provider that loses something, or a message's body, is found out, with the queue; no store starts on it."""
    source, destination = await filled("sqlite"), place("sqlite")
    kind = type(destination.choice.make(Path()))
    commit = kind.commit

    async def losing(provider: Any, changes: Changes) -> None:
        lose(changes)
        await commit(provider, changes)

    monkeypatch.setattr(kind, "commit", losing)
    with pytest.raises(InternalError, match=says):
        await copy(source, destination, TOLD)
    with pytest.raises(InternalError, match="not whole"):
        await house_of(destination).start()


async def test_a_queue_is_named_by_its_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose messages are missing is said by name where the records know it."""
    source, destination = place("sqlite"), place("sqlite")
    house = house_of(source)
    await house.start()
    value = b'{"id": 1, "name": "orders", "virtual_host": "/"}'
    await house.engine.records.put(PutRecordsRequest(puts=[Record(kind="queue", key="x", value=value)]))
    await house.append(enqueue(10, 4))
    await house.stop()
    kind = type(destination.choice.make(Path()))
    commit = kind.commit

    async def losing(provider: Any, changes: Changes) -> None:
        changes.entries.clear()
        await commit(provider, changes)

    monkeypatch.setattr(kind, "commit", losing)
    with pytest.raises(InternalError, match=r"queue orders in /: 4 messages \(\w+\), and there none"):
        await copy(source, destination, TOLD)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mysql://root:tell-nobody@db/x", "it is no URL of a store"),
        ("postgresql://a:tell-nobody@127.0.0.1:1/x", "cannot use postgresql://a@127.0.0.1:1/x: connection refused"),
        ("memory:somewhere", "the store provider memory keeps nothing in"),
    ],
)
async def test_a_place_that_is_none(filled: Filled, text: str, says: str) -> None:
    """It is said in a line what is wrong with it, on either side, and no password."""
    there = await filled("sqlite")
    for wrong in (lambda: copy(site(text), there, TOLD), lambda: copy(there, site(text), TOLD)):
        with pytest.raises(BrokerError, match=says) as refused:
            await wrong()
        assert "tell-nobody" not in str(refused.value)


def test_how_places_are_shown() -> None:
    """Without passwords and options."""
    assert str(site("postgresql://me:tell-nobody@one,two/x?passfile=y")) == "postgresql://me@one,two/x"
    assert str(site("sqlite:/a/b")) == str(site("/a/b")) == "sqlite:/a/b"


def test_batches_are_what_the_store_keeps() -> None:
    """The fields of a batch are those that the tally puts together: another one would have to be counted too."""
    fields = [field.name for field in EntryBatch.DESCRIPTOR.fields]
    assert fields == ["id", "partition", "content", "count", "entries"]
