"""Snapshots: all that there is at one moment, of which an empty provider becomes the same."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from services.common import plugins
from services.rpc.store_pb2 import Fence, JournalFrame, PutRecordsRequest, Record
from services.store import snapshot as pieces_of_rows
from services.store.backup.wire import from_piece, to_piece
from services.store.compaction import Compaction
from services.store.provider import Changes, Provider
from tests.support.kept import everything, write_everything
from tests.support.store_house import House, dequeue, enqueue


def another(house: House, folder: Path) -> Provider:
    """An empty provider of the same kind."""
    folder.mkdir()
    made: Provider = (house._create or plugins.load("store_providers", house._name))(folder)
    return made


def names_in(folder: Path) -> set[str]:
    """Of what lies there."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


async def snapshot(house: House) -> list[Changes]:
    """All pieces, as they come out of a file."""
    async with aclosing(house.provider.snapshot()) as pieces:
        return [from_piece(to_piece(changes)) async for changes in pieces]


async def test_all_of_it(house: House, tmp_path: Path) -> None:
    """Every kind of thing is in the pieces, and an empty provider that they are committed to gives the same."""
    await write_everything(house)
    before = await everything(house.provider)
    assert all(before.values()), [name for name, found in before.items() if not found]
    empty = another(house, tmp_path / "another")
    await empty.open()
    for changes in await snapshot(house):
        await empty.commit(changes)
    assert await everything(empty) == before
    assert await empty.begin_incarnation() == house.engine.incarnation + 1
    await empty.close()


async def test_of_one_moment(house: House) -> None:
    """Commits go on between the pieces; none of what they write or remove shows."""
    for number in (10, 20):
        await house.append(enqueue(number, 2))
    pieces: Any = house.provider.snapshot()
    found = [await anext(pieces)]
    await house.append(enqueue(30, 2))
    await house.append(dequeue(10, 0, 1))
    await house.engine.records.put(PutRecordsRequest(puts=[Record(kind="queue", key="late")]))
    found += [changes async for changes in pieces]
    assert sorted(number for changes in found for number in changes.entries) == [10, 20]
    assert sorted(number for changes in found for number in changes.contents) == [10, 20]
    assert [key for changes in found for key in changes.records] == []
    assert await house.alive() == {20: [0, 1], 30: [0, 1]}


async def test_in_pieces(house: House) -> None:
    """Large contents come one by one, so that none of them holds others up for long."""
    for number in range(10, 14):
        frame = enqueue(number, 1)
        frame.contents[0].columns += bytes(1 << 20)
        await house.append(frame)
    found = await snapshot(house)
    assert max(len(changes.contents) for changes in found) == 1


async def test_the_same_pieces_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing is written, pieces are the same each time: a reader that was killed goes on behind those it has."""
    monkeypatch.setattr(pieces_of_rows, "_PIECE_BYTES", 100)
    await write_everything(house)
    await house.acquire(*(f"partition/{number}" for number in range(20, 3, -1)))
    found = await snapshot(house)
    assert len(found) > 10
    assert await snapshot(house) == found


async def test_given_up(house: House) -> None:
    """A reader that stops early leaves nothing behind: the store goes on, and the next one begins anew."""
    await house.append(enqueue(10, 2))
    pieces: Any = house.provider.snapshot()
    await anext(pieces)
    await pieces.aclose()
    await house.append(dequeue(10, 0))
    assert await house.alive() == {10: [1]}
    assert sum(len(changes.dequeues) for changes in await snapshot(house)) == 1


async def test_counts_go_on_from_an_incarnation(house: House) -> None:
    """Where the number of starts is set, the next start is one more, and versions exceed what came before."""
    await house.provider.commit(Changes(incarnation=5_000_000))
    await house.restart()
    assert house.engine.incarnation == 5_000_001


async def test_files_are_all_that_it_has(house: House, tmp_path: Path) -> None:
    """What lies in the folder of a store that runs is named: put elsewhere together, nothing is left behind."""
    await house.append(enqueue(10, 2))
    assert names_in(tmp_path) <= set(house.provider.files())


async def test_blanked_content_stays_blanked(house: House, tmp_path: Path) -> None:
    """What was compacted is known as such: a message that is sent again is written again, body and all."""
    frame = enqueue(10, 8)
    await house.append(frame)
    await house.append(dequeue(10, *range(1, 8)))
    work = Compaction(house.engine._live, house.engine._live.contents[10])
    await work.read(house.provider)
    house.engine._committer.submit(work)
    await house.append(JournalFrame(fences=[Fence(lease="partition/9")]))
    found = await snapshot(house)
    assert [list(changes.blanked) for changes in found if changes.blanked] == [[10]]
    assert [number for changes in found for number in changes.contents] == []
