"""A half that is older than the other: it does not have what the other rests on, and no store starts on the two."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from services.common.clock import epoch_ms
from services.common.errors import InternalError
from services.store.moving.export import export
from services.store.moving.importing import import_file
from services.store.moving.progress import Silent
from services.store.moving.site import site
from services.store.provider import Changes, RecordRow
from services.store.providers.apart_halves import Half
from tests.support.apart import LEASE, Crash, fail, made, refused, reopened, two

DECLARED = Changes(records={("queue", "b"): RecordRow("queue", "b", b"{}", 2)})
ORIGIN = Changes(origin=7)
GROUP = Changes(leases={"partition/1": LEASE})


class Halves:
    """Files of both halves, of which one is put aside, and back later."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = {"messages": folder / "hopline.db", "configuration": folder / "configuration" / "hopline.db"}

    def keep(self) -> None:
        """As they are now, closed."""
        for holds, file in self._files.items():
            shutil.copy(file, self._folder / f"{holds}.kept")

    def put_back(self, holds: str) -> None:
        """The half that was kept takes the place of what there is."""
        shutil.copy(self._folder / f"{holds}.kept", self._files[holds])


@pytest.fixture
async def halves(tmp_path: Path) -> Halves:
    """Of a store that has started once."""
    await made(tmp_path, two)
    halves = Halves(tmp_path)
    halves.keep()
    return halves


async def _run(folder: Path, *groups: Changes, starts: int = 1) -> None:
    for _ in range(starts):
        provider = await reopened(folder)
        await _write(provider, *groups)
        await provider.close()


async def _write(provider: Any, *groups: Changes) -> None:
    await provider.begin_incarnation()
    for changes in groups:
        await provider.commit(changes)


@pytest.mark.parametrize(("holds", "newer"), [("messages", "configuration"), ("configuration", "messages")])
@pytest.mark.parametrize("starts", [1, 3])
async def test_of_a_former_start(tmp_path: Path, halves: Halves, holds: str, newer: str, starts: int) -> None:
    """Whatever was written since: it is said which one is older, and what to do."""
    await _run(tmp_path, GROUP, starts=starts)
    halves.put_back(holds)
    said = await refused(tmp_path)
    assert f"the {holds} in sqlite:" in said
    assert f"is older than the {newer} in sqlite:" in said
    assert "make both of one backup" in said


async def test_both_of_a_former_start(tmp_path: Path, halves: Halves) -> None:
    """That is a backup of both, as of any store."""
    await _run(tmp_path, ORIGIN, DECLARED, GROUP, starts=2)
    for holds in ("messages", "configuration"):
        halves.put_back(holds)
    await _run(tmp_path)


async def _while_open(folder: Path, halves: Halves, before: Changes, *since: Changes) -> None:
    """The halves are kept behind `before`, and `since` is written in the same start."""
    provider = await reopened(folder)
    await provider.begin_incarnation()
    await provider.commit(before)
    for half in (provider.messages, provider.configuration):
        await half.provider._checkpointer.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    halves.keep()
    for changes in since:
        await provider.commit(changes)
    await provider.close()


async def test_messages_rest_on_a_queue(tmp_path: Path, halves: Halves) -> None:
    """What came after it was declared: without the queue a start would drop it."""
    await _while_open(tmp_path, halves, GROUP, DECLARED, GROUP)
    halves.put_back("configuration")
    assert "the configuration in" in await refused(tmp_path)


async def test_a_queue_rests_on_an_origin(tmp_path: Path, halves: Halves) -> None:
    """Its id was made of that, and another queue would get the same."""
    await _while_open(tmp_path, halves, DECLARED, ORIGIN, DECLARED)
    halves.put_back("messages")
    assert "the messages in" in await refused(tmp_path)


async def test_nothing_rests_on_it(tmp_path: Path, halves: Halves) -> None:
    """A group of messages without the last change of configuration is as one that came before it."""
    await _while_open(tmp_path, halves, DECLARED, DECLARED)
    halves.put_back("messages")
    await _run(tmp_path)


async def test_only_what_is_new_is_noted(apart: Any) -> None:
    """One group after each change: the next ones are given on as they are."""
    await apart.begin_incarnation()
    seen = fail(apart.messages, 0)
    await apart.commit(DECLARED)
    groups = [Changes(leases={"partition/1": LEASE}) for _ in range(3)]
    for group in groups:
        await apart.commit(group)
    assert [each is group for each, group in zip(seen, groups, strict=True)] == [False, True, True]
    assert all(not group.records for group in groups)


@pytest.mark.parametrize("left", range(14))
async def test_killed_at_any_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    """No crash makes one of them look older, at however many starts in a row."""
    commit = Half.commit

    async def dying(half: Half, changes: Changes) -> None:
        nonlocal left
        if not left:
            raise Crash
        left -= 1
        await commit(half, changes)

    with monkeypatch.context() as patched:
        patched.setattr(Half, "commit", dying)
        for each in (left % 3, left, left):
            left = each
            provider = await reopened(tmp_path)
            with pytest.raises(Crash):
                await _write(provider, GROUP, *(ORIGIN, DECLARED, GROUP) * 5)
            await provider.close()
    await _run(tmp_path)


@pytest.mark.parametrize("holds", ["messages", "configuration"])
async def test_going_on_with_it(tmp_path: Path, halves: Halves, holds: str) -> None:
    """Through a file, where somebody says so: the new store has numbers that neither has given out."""
    await _run(tmp_path, ORIGIN, DECLARED, GROUP, starts=3)
    halves.put_back(holds)
    file, to = tmp_path / "file", site(str(tmp_path / "new"), "sqlite:")
    with pytest.raises(InternalError, match="older"):
        await export(site(str(tmp_path), "sqlite:"), file, Silent())
    await export(site(str(tmp_path), "sqlite:", older=True), file, Silent())
    await import_file(file, to, 8, epoch_ms(), Silent())
    async with to.source() as provider:
        assert await provider.last_origin() > 7
        assert await provider.begin_incarnation() > 4
        assert {row.key for row in await provider.records()} >= {"a"}
