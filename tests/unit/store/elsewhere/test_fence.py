"""Of two processes one writes: what keeps the data refuses the other."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from services.common.errors import InternalError
from services.store.provider import Changes, Occupied
from tests.support.elsewhere import Place
from tests.support.written_groups import alive, commit, group

SOON = 10.0  # seconds: whoever waits for the health of a process that stands by is not told until then


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    """A process that starts does not wait long for the one that writes."""
    monkeypatch.setattr(f"services.store.providers.{place.name}_writer._ENDING_SECONDS", 0.3)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    """It waits for the end of that, however busy the machine is."""
    monkeypatch.setattr(f"services.store.providers.{place.name}_writer._ENDING_SECONDS", 30.0)


async def test_while_one_lives(place: Place, url: str, provider: Any) -> None:
    """A second one is refused soon, with the name of the first, which goes on, also after its connection was lost."""
    for number in (5, 6):
        with pytest.raises(InternalError, match=rf"another store process \(process {os.getpid()} on .*\) writes to "):
            await asyncio.wait_for(place.provider(url).open(), SOON)
        await commit(provider, Changes(origin=number))
        assert await provider.last_origin() == number
        await place.cut(provider)
        await commit(provider, Changes(origin=number))


async def test_the_next_one_waits_for_the_end_of_the_last(place: Place, url: str, provider: Any, patient: None) -> None:
    """A process that is restarted while its predecessor ends starts when that is gone."""
    following = place.provider(url)
    opening = asyncio.ensure_future(following.open())
    await asyncio.sleep(0.3)
    assert not opening.done()
    await provider.close()
    await asyncio.wait_for(opening, 20)
    await following.commit(Changes(origin=6))
    await following.close()


async def test_two_at_once(place: Place, url: str, impatient: None) -> None:
    """One of them writes, and the other is told; the one that was told that it writes goes on."""
    for number in range(1, 6):
        both = [place.provider(url) for _ in range(2)]
        told = await asyncio.gather(*(each.open() for each in both), return_exceptions=True)
        assert sorted(type(each) for each in told if each) == [Occupied]
        await both[told.index(None)].commit(group(number))
        for each in both:
            await each.close()


async def test_a_stale_process(place: Place, url: str, provider: Any, patient: None) -> None:
    """A process that was given up and comes back writes nothing, names the one that writes, and ends."""
    ended: list[BaseException] = []
    provider.watch(ended.append)
    await provider.commit(group(1))
    await place.silence(provider)
    following = place.provider(url)
    await following.open()
    await following.commit(group(2))
    for _ in range(2):
        with pytest.raises(InternalError, match=r"another store process .* writ(es|e) to .*: stop it, or this"):
            await commit(provider, group(3))
    assert [str(end) for end in ended] == [provider.trouble()]
    assert list(await alive(following)) == [1, 2]
    await commit(following, group(4))
    assert list(await alive(following)) == [1, 2, 4]
    await following.close()
