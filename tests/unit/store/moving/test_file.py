"""Export and import: any provider to a file, a file to any provider; a file goes on where it was cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.storing import commands
from services.common.clock import epoch_ms
from services.common.errors import PreconditionFailed
from services.common.restored import RECORD_KIND
from services.store import snapshot
from services.store.backup.continued import ContinuedWriter
from services.store.backup.file import verify
from services.store.moving.export import export
from services.store.moving.importing import import_file
from services.store.moving.progress import Silent
from services.store.moving.site import Site
from tests.support.backups import restored
from tests.support.kept import everything
from tests.support.moving import KINDS, house_of
from tests.support.store_house import dequeue

Place = Callable[[str], Site]
Filled = Callable[[str], Any]
TOLD = Silent()
PARTITIONS = 4
_STEPPED = ("leases", "origin", "records")  # by the next generation


async def contents(where: Site) -> dict[str, Any]:
    async with where.source() as provider:
        found = await everything(provider)
    found["others"] = [row for row in found["records"] if row.kind != RECORD_KIND]
    return {name: value for name, value in found.items() if name not in _STEPPED}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("to", KINDS)
async def test_there_and_back(place: Place, filled: Filled, tmp_path: Path, kind: str, to: str) -> None:
    """From a file of any provider every provider becomes the same; it is the next generation, which is new."""
    source, destination, file = await filled(kind), place(to), tmp_path / "all.export"
    exported = await export(source, file, TOLD)
    assert (exported.manifest.messages, exported.manifest.generation, exported.resumed) == (7, 1, 0)
    imported = await import_file(file, destination, PARTITIONS, epoch_ms(), TOLD)
    assert imported.restored.generation == 2
    assert await contents(destination) == await contents(source)
    house = house_of(destination)
    await house.start()
    assert house.engine.incarnation > 1 << 16
    epochs = await house.acquire("partition/1", "partition/3")
    assert min(epochs.values()) > 1 << 18
    await house.stop()
    again = await export(destination, tmp_path / "again.export", TOLD)
    assert again.manifest.generation == 2


async def test_a_file_is_a_backup(filled: Filled, tmp_path: Path) -> None:
    """What was exported can be verified and restored as a backup can."""
    file = tmp_path / "all.export"
    await export(await filled("postgres"), file, TOLD)
    assert verify(file).messages == 7
    house = await restored(file, tmp_path / "new")
    assert sorted(await house.alive(1)) == [10, 30, 40]
    await house.stop()


@pytest.mark.parametrize("kind", KINDS)
async def test_cut_off_anywhere(filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Pieces that are there are not written again, and the file is the one that it would have been."""
    monkeypatch.setattr(snapshot, "_PIECE_BYTES", 100)
    source, file, part = await filled(kind), tmp_path / "all.export", tmp_path / ".all.export.part"
    await export(source, file, TOLD)
    whole = file.read_bytes()
    for length in (len(whole) // 8, len(whole) // 2, len(whole) - 1, len(whole)):
        file.unlink()
        part.write_bytes(whole[:length])
        exported = await export(source, file, TOLD)
        assert exported.resumed == length
        assert file.read_bytes() == whole
        assert not part.exists()


@pytest.mark.parametrize("cut", ["head", "half"])
async def test_a_store_that_has_changed_since(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """The part of a file is of no use then: it is begun anew, from the store as it is."""
    monkeypatch.setattr(snapshot, "_PIECE_BYTES", 100)
    source, file, part = await filled("sqlite"), tmp_path / "all.export", tmp_path / ".all.export.part"
    await export(source, file, TOLD)
    whole = file.read_bytes()
    file.unlink()
    part.write_bytes(whole[: {"head": 20, "half": len(whole) - 40}[cut]])
    house = house_of(source)
    await house.start()
    await house.append(dequeue(10, 0), writer=99)
    await house.stop()
    exported = await export(source, file, TOLD)
    assert (exported.resumed, exported.manifest.messages) == (0, 6)
    assert verify(file) == exported.manifest


async def test_what_stays_is_gone_on_with(filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export that is broken off leaves what it has, and no file of that name; no other process writes to it."""
    source, file = await filled("sqlite"), tmp_path / "all.export"
    with monkeypatch.context() as patched:
        patched.setattr(ContinuedWriter, "finish", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await export(source, file, TOLD)
    assert not file.exists()
    writer = ContinuedWriter(file)
    with pytest.raises(PreconditionFailed, match="is being written by another process"):
        await export(source, file, TOLD)
    writer.close()
    assert (await export(source, file, TOLD)).resumed > 0
    with pytest.raises(PreconditionFailed, match="is there already"):
        await export(source, file, TOLD)


async def test_import_goes_on_with_the_same_file(
    place: Place, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that has ended half-way goes on where it stopped; a damaged file writes nothing at all."""
    monkeypatch.setattr(snapshot, "_PIECE_BYTES", 100)
    source, destination, file = await filled("sqlite"), place("sqlite"), tmp_path / "all.export"
    await export(source, file, TOLD)
    kind = type(destination.choice.make(tmp_path))
    commit, left = kind.commit, iter(range(4))

    async def ending(provider: Any, changes: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        await commit(provider, changes)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "commit", ending)
        with pytest.raises(KeyboardInterrupt):
            await import_file(file, destination, PARTITIONS, epoch_ms(), TOLD)
    imported = await import_file(file, destination, PARTITIONS, epoch_ms(), TOLD)
    assert imported.moved.resumed == 4 - 1  # the first commit was that it is not whole
    assert await contents(destination) == await contents(source)
    file.write_bytes(file.read_bytes()[:-9])
    another = place("sqlite")
    with pytest.raises(PreconditionFailed, match="was cut off"):
        await import_file(file, another, PARTITIONS, epoch_ms(), TOLD)
    assert another.folder
    assert not another.folder.exists()


async def test_the_commands(place: Place, filled: Filled, tmp_path: Path) -> None:
    """As a person calls them: what was done comes out, and what is wrong is one line and a status."""
    source, copied, imported, file = await filled("sqlite"), place("sqlite"), place("sqlite"), tmp_path / "x.export"

    async def run(*arguments: object) -> tuple[int, str]:
        words = [str(argument) for argument in arguments]
        result = await asyncio.to_thread(CliRunner().invoke, commands(lambda: None), words)
        return result.exit_code, result.output

    assert await run("copy", source.folder, copied) == (0, "7 messages in 1 queues, 2 records: checked\n")
    status, said = await run("export", copied.folder, file)
    assert status == 0
    assert "7 messages in 2 partitions" in said
    assert "read back and compared" in said
    status, said = await run("import", file, imported)
    assert status == 0
    assert "generation 2" in said
    status, said = await run("copy", source.folder, copied.folder)
    assert (status, said) == (1, "there is a store already: nothing was written; empty it, or take another\n")
