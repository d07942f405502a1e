"""A process that stands by is told at once when the writer has ended, and in time when it hangs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers import standstill
from tests.support.elsewhere import Place
from tests.support.written_groups import alive, commit, group


@pytest.fixture
async def following(place: Place, url: str) -> AsyncIterator[Any]:
    """Another one, which stands by."""
    provider = place.provider(url)
    yield provider
    await provider.close()


async def vacant(provider: Any) -> None:
    """Waits until no process writes."""
    async with asyncio.timeout(20):
        while await provider.occupied():
            await asyncio.sleep(0.05)


async def test_an_empty_store(following: Any) -> None:
    """A store that does not exist yet has no writer, and the next process is told which one begins."""
    assert not await following.occupied()


async def test_while_one_writes(provider: Any, following: Any) -> None:
    """The one that does is named."""
    for _ in range(3):
        assert f"process {os.getpid()} on " in await following.occupied()
        await commit(provider, Changes(origin=5))


async def test_it_ends(provider: Any, following: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In good order: that is heard, however long one may be absent, and the next one has all of it."""
    monkeypatch.setattr("services.store.providers.jetstream_lookout._ABSENT_SECONDS", 60.0)
    await provider.commit(group(1))
    assert await following.occupied()
    await provider.close()
    await vacant(following)
    await following.open()
    assert list(await alive(following)) == [1]


async def test_it_dies(place: Place, provider: Any, following: Any) -> None:
    """Its connection ends, and none comes after it."""
    assert await following.occupied()
    await place.silence(provider)
    await vacant(following)


async def test_it_comes_back(place: Place, provider: Any, following: Any) -> None:
    """One that has lost its connection and has another is as alive as before."""
    assert await following.occupied()
    await place.cut(provider)
    await commit(provider, Changes(origin=5))
    for _ in range(3):
        assert await following.occupied()
        await asyncio.sleep(0.5)


async def test_the_place_is_away(place: Place, provider: Any, following: Any) -> None:
    """An engine that cannot be asked is reported, and no process is taken for dead for that."""
    assert await following.occupied()
    await asyncio.to_thread(place.stop)
    with pytest.raises(InternalError, match="cannot use"):
        await following.occupied()
    await asyncio.to_thread(place.start)
    await commit(provider, Changes(origin=5))
    assert await following.occupied()


async def test_a_process_that_stood_still_asks(
    place: Place, url: str, provider: Any, following: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it is sure only after it has asked; where another writes by now, never again."""
    ended: list[BaseException] = []
    provider.watch(ended.append)
    await provider.sure()
    provider._writer._still._looked -= 60
    await provider.sure()  # no other has begun
    await place.silence(provider)
    await vacant(following)
    await following.open()
    provider._writer._still._looked -= 60
    with pytest.raises(InternalError, match="another store process"):
        await commit_sure(provider)
    assert len(ended) == 1
    with pytest.raises(InternalError, match="another store process"):
        await provider.sure()


async def commit_sure(provider: Any) -> None:
    """Asks until that is answered, or refused for good."""
    for _ in range(5):
        await provider.sure()


async def test_sure_while_it_is_away(place: Place, provider: Any) -> None:
    """A store that knows the engine is away need not ask: renewals go on."""
    await asyncio.to_thread(place.stop)
    with pytest.raises(InternalError):
        await provider.commit(group(1))
    await asyncio.wait_for(provider.sure(), 0.5)


def test_the_ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap is doubt, until it is sure; small ones are none."""
    now = [0.0]
    still = standstill.Standstill(lambda: now[0])
    now[0] = 1.0
    assert not still.look()
    now[0] = 4.0
    assert still.look()
    assert still.look()
    still.sure()
    assert not still.look()
