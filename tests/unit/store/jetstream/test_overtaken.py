"""A snapshot, and a start, while others come in between: a late snapshot removes nothing of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest

from services.common.errors import InternalError
from services.store.provider import Changes, RecordRow
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import JetStreamLink, Lost
from services.store.providers.jetstream_snapshot import Snapshots
from services.store.providers.jetstream_url import parse
from services.store.providers.standing import Away
from tests.support.written_groups import alive, commit, dead, group
from tests.support.written_stream import reopened

pytestmark = pytest.mark.usefixtures("no_care")

RECORD = RecordRow("queue", "q", b"definition", 1)


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that starts finds no other."""

    async def nobody(*_: object) -> str:
        return ""

    monkeypatch.setattr(JetStreamLink, "writer", nobody)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start does not wait for long."""
    monkeypatch.setattr("services.store.providers.jetstream_writer._STARTING_SECONDS", 1.0)


@pytest.fixture
async def quiet(provider: JetStreamProvider) -> JetStreamProvider:
    """It does nothing of its own accord."""
    await calm(provider)
    return provider


async def calm(provider: JetStreamProvider) -> None:
    await provider._tasks.stop()
    await provider._writer._tasks.stop()


async def test_by_a_successor(url: str, quiet: JetStreamProvider, deaf: None, hasty: None) -> None:
    """A process that stood still when a snapshot was due, and lost its role, leaves the new writer's snapshot alone."""
    for number in range(1, 20):
        await quiet.commit(group(number))
    following = await reopened(url)
    await calm(following)
    await following.commit(dead(*range(1, 20)))
    await following._snapshots.take()
    await following._cleaning.step()
    with pytest.raises(Away):
        await quiet._snapshots.take()
    with pytest.raises(InternalError, match="has begun to write"):
        await quiet._snapshots.take()
    await following.commit(group(20))
    await following.close()
    again = await reopened(url)
    assert list(await alive(again)) == [20]
    await again.close()


async def test_by_one_whose_snapshot_has_the_same_number(
    url: str, quiet: JetStreamProvider, deaf: None, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stood still without room for a snapshot, and gives it up, leaves the new writer's alone."""
    await quiet.commit(group(1))
    give_up = quiet._snapshots._give_up

    async def overtaken(mark: Any) -> NoReturn:
        between = await reopened(url)
        await calm(between)
        monkeypatch.setattr(between._writer.left, "spares", lambda _: False)
        with pytest.raises(InternalError, match="no room for a snapshot"):
            await between._snapshots.take()
        await between.close()
        following = await reopened(url)
        await calm(following)
        await following._snapshots.take()
        assert following._writer.loaded.mark.snapshot == mark.snapshot
        await following.close()
        await give_up(mark)

    monkeypatch.setattr(quiet._snapshots, "_give_up", overtaken)
    monkeypatch.setattr(quiet._writer.left, "spares", lambda _: False)
    with pytest.raises(Away):
        await quiet._snapshots.take()
    again = await reopened(url)
    assert list(await alive(again)) == [1]
    await again.close()


async def test_by_two_successors(url: str, quiet: JetStreamProvider, deaf: None) -> None:
    """A process that comes back late is told which one writes now, though the claim of the one before that is gone."""
    await quiet.commit(group(1))
    for _ in range(2):
        following = await reopened(url)
        await following.close()
    with pytest.raises(InternalError, match=r"another store process .* has begun to write"):
        await quiet.commit(group(2))


class Late:
    """The messages of a group, of which the first ones are there, and the rest comes when it is let go."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch, there: int) -> None:
        self._url = url
        self._append = JetStreamLink.append
        self._rest: tuple[str, int, Sequence[bytes]] | None = None
        self._there = there

        async def torn(link: JetStreamLink, subject: str, last: int, payloads: Sequence[bytes]) -> int:
            return await self._torn(link, subject, last, payloads)

        monkeypatch.setattr(JetStreamLink, "append", torn)

    async def _torn(self, link: JetStreamLink, subject: str, last: int, payloads: Sequence[bytes]) -> int:
        if self._rest is not None or ".log." not in subject:
            return await self._append(link, subject, last, payloads)
        await self._append(link, subject, last, payloads[: self._there])
        self._rest = subject, last + self._there, payloads[self._there :]
        raise Lost("cut", gone=True)

    async def let_go(self) -> None:
        """It comes to the stream, which takes it or not."""
        assert self._rest
        link = await JetStreamLink.connect(parse(self._url))
        await asyncio.gather(self._append(link, *self._rest), return_exceptions=True)
        await link.close()


@pytest.mark.parametrize(("size", "there"), [(7, 0), (300_000, 1)], ids=["all of it", "the rest"])
async def test_by_a_group_in_doubt(
    url: str, quiet: JetStreamProvider, hasty: None, monkeypatch: pytest.MonkeyPatch, size: int, there: int
) -> None:
    """A group that comes, or the rest of it, when a snapshot has begun is not lost behind it, nor what comes after."""
    await quiet.commit(group(1))
    late, changes, begin = Late(url, monkeypatch, there), group(2, size), Snapshots._begin
    with pytest.raises(Away):
        await quiet.commit(changes)

    async def overtaken(snapshots: Snapshots) -> Any:
        begun = await begin(snapshots)
        await late.let_go()
        await commit(quiet, changes)
        return begun

    monkeypatch.setattr(Snapshots, "_begin", overtaken)
    await quiet._snapshots.take()
    await quiet.commit(Changes(records={("queue", "q"): RECORD}))
    await quiet.commit(group(3))
    if size < 100:
        await quiet.commit(dead(1, 2, 3))
    expected = await alive(quiet), [RECORD], {7: 3}
    await quiet._cleaning.step()
    await quiet.close()
    again = await reopened(url)
    assert (await alive(again), await again.records(), await again.writers()) == expected
    await again.close()


@pytest.mark.parametrize("more", [False, True], ids=["all is dead", "more is written"])
async def test_a_start_by_a_snapshot(
    url: str, quiet: JetStreamProvider, deaf: None, hasty: None, monkeypatch: pytest.MonkeyPatch, more: bool
) -> None:
    """A start during which the former writer puts a snapshot in the place of the log reads both anew."""
    await quiet.commit(group(1))
    await quiet._snapshots.take()
    await quiet.commit(group(2, 5000))
    await quiet.commit(dead(1, 2))
    last, once = JetStreamLink.last, iter((None,))

    async def overtaken(link: JetStreamLink, subject: str) -> Any:
        if "log.>" in subject and next(once, 0) is None:
            await quiet._snapshots.take()
            await quiet._cleaning.step()
            if more:
                await quiet.commit(group(3))
        return await last(link, subject)

    monkeypatch.setattr(JetStreamLink, "last", overtaken)
    following = await reopened(url)
    await calm(following)
    expected = await alive(quiet), await quiet.writers()
    assert (await alive(following), await following.writers()) == expected
    await following.commit(group(9))
    await following.close()
    again = await reopened(url)
    assert list(await alive(again)) == ([3, 9] if more else [9])
    await again.close()
