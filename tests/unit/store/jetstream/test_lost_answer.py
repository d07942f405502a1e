"""A group of which no answer came is asked for, and written if it is not there: once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import JetStreamLink
from services.store.providers.jetstream_load import MARK
from services.store.providers.jetstream_url import parse
from services.store.providers.standing import Away
from tests.support.jetstream import Servers
from tests.support.tcp_proxy import Fault, Proxy
from tests.support.written_groups import alive, commit, dead, group
from tests.support.written_stream import messages, reopened

pytestmark = pytest.mark.usefixtures("no_care")

LARGE = 3_000_000


@pytest.fixture
async def proxy(nats: Servers) -> AsyncIterator[Proxy]:
    proxy = Proxy(nats.each[0].port)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
async def cut(nats: Servers, proxy: Proxy, url: str) -> AsyncIterator[JetStreamProvider]:
    """A provider that comes to its stream by the proxy."""
    provider = JetStreamProvider(Path(), url.replace(f":{nats.each[0].port}/", f":{proxy.port}/"))
    await provider.open()
    await provider._tasks.stop()
    await provider._writer._tasks.stop()  # that every request is a commit's
    await provider.commit(group(1))
    yield provider
    await provider.close()


async def groups(url: str) -> int:
    """How many are there whole."""
    return sum(part.nth == part.total - 1 for _, part in await messages(url, "log.>"))


@pytest.mark.parametrize("size", [7, LARGE])
@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name)
async def test_one_is_lost(cut: JetStreamProvider, proxy: Proxy, url: str, fault: Fault, size: int) -> None:
    """Whether the request was lost, the answer, or both come late: the group is there, and was written once."""
    before = await groups(url)
    proxy.strike(fault)
    assert await commit(cut, group(2, size)) == 1
    await commit(cut, group(3))
    await proxy.let_go()
    await commit(cut, group(4))
    assert await groups(url) == before + 3
    expected = {number: group(number, size if number == 2 else 7).contents[number] for number in range(1, 5)}
    assert await alive(cut) == expected
    assert await cut.writers() == {7: 4}
    await cut.close()
    again = await reopened(url)
    assert await alive(again) == expected
    await again.close()


async def test_what_comes_late_is_shut_out(cut: JetStreamProvider, proxy: Proxy, url: str) -> None:
    """A request that comes when its entries were acknowledged long ago does not bring them back."""
    proxy.strike(Fault.DELAY_REQUEST)
    await commit(cut, group(2))
    await commit(cut, dead(2))
    await proxy.let_go()
    await asyncio.sleep(0.2)
    await commit(cut, group(3))
    assert list(await alive(cut)) == [1, 3]


async def test_what_comes_late_comes_first(cut: JetStreamProvider, proxy: Proxy, url: str) -> None:
    """A request that comes just before it is sent again is found, and not written again."""
    proxy.strike(Fault.DELAY_REQUEST)
    changes = group(2)
    with pytest.raises(Away):
        await cut.commit(changes)
    append = JetStreamLink.append

    async def overtaken(link: JetStreamLink, *arguments: object) -> int:
        await proxy.let_go()
        await asyncio.sleep(0.2)
        return await append(link, *arguments)  # type: ignore[arg-type]

    before = await groups(url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JetStreamLink, "append", overtaken)
        await cut.commit(changes)
    assert await groups(url) == before + 1
    assert list(await alive(cut)) == [1, 2]
    await commit(cut, group(3))
    assert list(await alive(cut)) == [1, 2, 3]


@pytest.mark.parametrize("size", [7, LARGE])
async def test_many_in_a_row(cut: JetStreamProvider, proxy: Proxy, url: str, size: int) -> None:
    """Any answer may be lost at any time, also to the question for it: nothing is written twice."""
    before, until = await groups(url), 32 if size < LARGE else 12
    for number in range(2, until):
        proxy.strike(list(Fault)[number % 3])
        writing = asyncio.ensure_future(commit(cut, group(number, size)))
        if number % 2:
            await proxy.struck.wait()
            proxy.strike(list(Fault)[number // 3 % 3])
        await writing
        proxy.fault = None
    await proxy.let_go()
    assert await groups(url) == before + until - 2
    assert list(await alive(cut)) == list(range(1, until))
    await cut.close()
    again = await reopened(url)
    assert list(await alive(again)) == list(range(1, until))
    await again.close()


async def test_one_that_is_given_up(cut: JetStreamProvider, proxy: Proxy, url: str) -> None:
    """A store that does not ask again for an unanswered group goes on with the next one, and has both."""
    proxy.strike(Fault.LOSE_ANSWER)
    with pytest.raises(Away):
        await cut.commit(group(2))
    await commit(cut, group(3))
    assert list(await alive(cut)) == [1, 2, 3]


async def test_another_comes_in_between(cut: JetStreamProvider, proxy: Proxy, url: str) -> None:
    """What the provider writes for itself meanwhile is not taken for the group that is in doubt, nor the reverse."""
    for number, fault in enumerate((Fault.LOSE_ANSWER, Fault.LOSE_REQUEST), 2):
        before = await groups(url)
        proxy.strike(fault)
        changes = group(number)
        with pytest.raises(Away):
            await cut.commit(changes)
        await cut._writer.move(lambda: Changes(contents={1: b"moved"}))
        await cut.commit(changes)
        assert await groups(url) == before + 2
        assert list(await alive(cut)) == list(range(1, number + 1))
        assert (await alive(cut))[1] == b"moved"


async def test_of_a_snapshot(cut: JetStreamProvider, proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot whose mark is there, though no answer came, is the one that a start reads: it is left alone."""
    put = cut._writer.put

    async def unheard(subject: str, body: bytes) -> int:
        if subject == MARK:
            proxy.strike(Fault.LOSE_ANSWER)
        return await put(subject, body)

    with monkeypatch.context() as patch:
        patch.setattr(cut._writer, "put", unheard)
        with pytest.raises(Away):
            await cut._snapshots.take()
    await cut._snapshots._begin()
    await commit(cut, group(2))
    await cut._cleaning.step()
    for number, snapshot in ((3, 1), (4, 3)):
        expected = await alive(cut)
        again = await taken_over(cut, url)
        assert again._writer.loaded.mark.snapshot == snapshot
        assert await alive(again) == expected == {each: group(each).contents[each] for each in range(1, number)}
        await commit(again, group(number))
        await again._snapshots.take()
        cut = again
    await cut.close()


async def taken_over(provider: JetStreamProvider, url: str) -> JetStreamProvider:
    """Another process goes on."""
    await provider.close()
    return await reopened(url)


async def test_a_commit_that_is_cancelled(cut: JetStreamProvider, url: str) -> None:
    """A commit that is given up halfway leaves nothing in doubt for the next one."""
    writing = asyncio.ensure_future(cut.commit(group(2)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    await asyncio.sleep(0.1)
    await commit(cut, group(3))
    assert {1, 3} <= set(await alive(cut)) <= {1, 2, 3}
    found = await alive(cut)
    await cut.close()
    again = await reopened(url)
    assert await alive(again) == found
    await again.close()


async def test_no_answer_at_all(nats: Servers, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that say nothing any more are given up after a while, and the group asked for.

    They refuse since they were asked, not since that was noticed.
    """
    provider = await reopened(url)
    monkeypatch.setattr("services.store.providers.jetstream_writer.epoch_ms", lambda: 1000)
    monkeypatch.setattr("services.store.providers.jetstream_link._ANSWER_SECONDS", 0.3)
    monkeypatch.setattr("services.store.providers.jetstream_link._CONNECT_SECONDS", 0.3)
    changes = group(1)
    nats.each[0].pause()
    try:
        with pytest.raises(Away, match="refuses since 1970-01-01 00:00:01 UTC: no answer in time"):
            await provider.commit(changes)
        with pytest.raises(Away, match="no answer in time"):
            await provider.commit(changes)
    finally:
        nats.each[0].resume()
    await commit(provider, changes)
    assert list(await alive(provider)) == [1]
    await provider.close()
    assert [part.number for _, part in await messages(url, "log.>")] == [1]


@pytest.mark.timeout(60)
async def test_no_reader(nats: Servers, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that is larger than what is on its way at most is given up, too, where the server stands still."""
    provider = await reopened(url)
    monkeypatch.setattr("services.store.providers.jetstream_link._BYTES_PER_SECOND", 1 << 40)
    monkeypatch.setattr("services.store.providers.jetstream_link._ANSWER_SECONDS", 0.3)
    monkeypatch.setattr("services.store.providers.jetstream_link._CONNECT_SECONDS", 0.3)
    changes = group(1, 7 * LARGE)
    nats.each[0].pause()
    try:
        async with asyncio.timeout(10):
            with pytest.raises(Away, match="no answer in time"):
                await provider.commit(changes)
    finally:
        nats.each[0].resume()
    monkeypatch.undo()
    await commit(provider, changes)
    assert await alive(provider) == {1: changes.contents[1]}
    await provider.close()


async def test_groups_that_the_stream_has_lost(cut: JetStreamProvider, url: str) -> None:
    """Where what was confirmed is not there any more, the process ends: it knows of too much."""
    ended: list[BaseException] = []
    cut.watch(ended.append)
    link = await JetStreamLink.connect(parse(url))
    await link._jetstream.delete_stream(parse(url).stream)
    await link.make_stream(1)
    await link.close()
    for _ in range(2):
        with pytest.raises(InternalError, match="has lost what it had confirmed: its last message is 0, and 2 was"):
            await commit(cut, group(2))
    assert len(ended) == 1
    assert "has lost" in cut.trouble()
