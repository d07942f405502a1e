"""Replacing a store: it is asked for what it gave, and stays as it was, at any failure or kill in between."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from services.common.errors import BrokerError, InternalError
from services.store.folder import DataFolder
from services.store.providers.sqlite_database import Database
from services.store.providers.sqlite_schema import MIGRATIONS
from tests.support.backups import restore, restored
from tests.support.store_house import House


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def top(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class Breaking:
    """Names can be changed so many times, then no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int, failure: BaseException) -> None:
        self._left = times
        for how in ("rename", "replace"):
            monkeypatch.setattr(Path, how, self._breaking(getattr(Path, how), failure))

    def _breaking(self, change: Callable[[Path, Path], Path], failure: BaseException) -> Callable[[Path, Path], Path]:
        def changed(path: Path, to: Path) -> Path:
            self._left -= 1
            # What fails once works again when it is undone; a process that is killed undoes nothing.
            if self._left == -1 or (self._left < 0 and not isinstance(failure, OSError)):
                raise failure
            return change(path, to)

        return changed


class Killed(BaseException):
    """As if the process had ended here."""


@pytest.fixture
async def fourth(file: Path, tmp_path: Path) -> Path:
    """The folder of a store of the fourth generation."""
    for _ in range(3):
        outcome = await restore(file, tmp_path / "new", replace=True)
    assert outcome.restored.generation == 4
    store = House("sqlite", tmp_path / "new")
    await store.start()
    await store.stop()
    return tmp_path / "new"


@pytest.mark.parametrize("times", range(4))
async def test_an_exchange_that_fails_is_undone(
    file: Path, fourth: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Whichever name cannot be changed: the folder is as it was, and a store starts on it."""
    before = tree(fourth)
    with monkeypatch.context() as patched:
        Breaking(patched, times, OSError(5, "Input/output error"))
        with pytest.raises(BrokerError, match="Input/output error"):
            await restore(file, fourth, replace=True)
    assert tree(fourth) == before
    with DataFolder(fourth).held():
        pass
    assert (await restore(file, fourth, replace=True)).restored.generation == 5


@pytest.mark.parametrize("times", range(1, 4))
async def test_an_exchange_that_was_killed_is_done_again(
    file: Path, fourth: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It knows what the store gave that was there before; that is put aside once, and nothing else is left."""
    before = top(fourth)
    with monkeypatch.context() as patched:
        Breaking(patched, times, Killed())
        with pytest.raises(Killed):
            await restore(file, fourth, replace=True)
    (fourth / "restoring-killed").mkdir()
    with pytest.raises(InternalError, match="not finished: do it again"):
        DataFolder(fourth).take()
    outcome = await restore(file, fourth, replace=True)
    assert outcome.restored.generation == 5
    assert outcome.aside
    assert (outcome.aside / "hopline.db").exists()
    assert top(fourth) == (before | {outcome.aside.name}) - {"hopline.spare"}


async def test_a_full_disk_ends_it(file: Path, fourth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore does not wait for room, as a store does: it fails, and says that there is none."""
    before = tree(fourth)

    async def full(_: Database) -> None:
        failure = sqlite3.OperationalError("database or disk is full")
        failure.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise failure

    monkeypatch.setattr(Database, "open", full)
    with pytest.raises(BrokerError, match="disk is full"):
        await asyncio.wait_for(restore(file, fourth, replace=True), 5)
    assert tree(fourth) == before


async def test_what_is_put_aside_is_as_it_was(file: Path, tmp_path: Path) -> None:
    """A store of a former release too: what it gave is read, nothing of it is brought to this one's form."""
    old = tmp_path / "new" / "hopline.db"
    old.parent.mkdir()
    with closing(sqlite3.connect(old)) as connection:
        connection.executescript(MIGRATIONS[0])
        connection.execute("CREATE TABLE migration (version INTEGER PRIMARY KEY, at INTEGER NOT NULL)")
        connection.execute("INSERT INTO migration VALUES (1, 0)")
        connection.execute("INSERT INTO lease VALUES ('partition/1', ?, '', '', '')", (9 << 18,))
        connection.execute("UPDATE counter SET value = 70000")
        connection.commit()
    before = old.read_bytes()
    outcome = await restore(file, old.parent, replace=True)
    assert outcome.aside
    assert {path.name: path.read_bytes() for path in outcome.aside.iterdir()} == {old.name: before}
    new = House("sqlite", old.parent)
    await new.start()
    assert (await new.acquire("partition/1"))["partition/1"] > 10 << 18
    assert await new.engine.origins.allocate() > 70000 + (1 << 17)
    await new.stop()


async def test_a_store_that_was_killed_is_asked_for_what_it_gave(file: Path, fourth: Path, tmp_path: Path) -> None:
    """Also for what is in its log alone."""
    store = House("sqlite", fourth)
    await store.start()
    epoch = (await store.acquire("partition/1"))["partition/1"]
    shutil.copytree(fourth, tmp_path / "killed")
    await store.stop()
    assert (tmp_path / "killed" / "hopline.db-wal").stat().st_size
    new = await restored(file, tmp_path / "killed", replace=True)
    assert (await new.acquire("partition/1"))["partition/1"] >= epoch + (1 << 18)
    await new.stop()
