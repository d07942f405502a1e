"""Of two processes one writes: the stream itself refuses the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.common.errors import InternalError
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import Behind, JetStreamLink, Lost
from services.store.providers.jetstream_url import parse
from tests.support.jetstream import Servers
from tests.support.tcp_proxy import Proxy
from tests.support.written_groups import alive, group
from tests.support.written_stream import reopened


async def nobody(*_: object) -> str:
    """Answers."""
    return ""


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that starts finds no other: they cannot reach each other, or ask at once."""
    monkeypatch.setattr(JetStreamLink, "writer", nobody)


async def test_with_its_connection(url: str, provider: JetStreamProvider, deaf: None) -> None:
    """The stream itself refuses what is sent by a process that does not know its last message."""
    link = provider._writer.link
    assert link
    following = await reopened(url)
    with pytest.raises(Behind):
        await link.append(f"{link.prefix}.log.1", provider._writer.loaded.last, [b"late"])
    with pytest.raises(InternalError, match="has begun to write"):
        await provider.commit(group(1))
    await following.close()


async def test_an_idle_process_finds_out(
    url: str, provider: JetStreamProvider, deaf: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a commit, too."""
    monkeypatch.setattr("services.store.providers.jetstream_writer._PING_SECONDS", 0.0)
    ended = asyncio.Event()
    provider.watch(lambda _: ended.set())
    following = await reopened(url)
    await asyncio.wait_for(ended.wait(), 10)
    await following.close()


async def test_a_process_that_has_ended_says_so(url: str, provider: JetStreamProvider) -> None:
    """It is no answer any more to which process writes, though it runs: neither for itself, nor for the next one."""
    asking = await JetStreamLink.connect(parse(url))
    assert await asking.writer(5)
    await asking._jetstream.publish(f"{asking.prefix}.note", b"what no store has written")
    with pytest.raises(InternalError, match="does not understand"):
        await provider.commit(group(1))
    async with asyncio.timeout(5):
        while await asking.writer(0.5) is not None:
            await asyncio.sleep(0.01)
    assert provider._writer.link
    await asking.close()


async def test_a_process_that_is_overtaken_names_the_other(
    url: str, provider: JetStreamProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not itself, which is as near."""
    with monkeypatch.context() as patch:
        patch.setattr(JetStreamLink, "writer", nobody)
        following = await reopened(url)
    monkeypatch.setattr(provider._writer, "_who", "the former one")
    monkeypatch.setattr(following._writer, "_who", "the following one")
    with pytest.raises(InternalError, match=r"another store process \(the following one\) has begun"):
        await provider.commit(group(1))
    await following.close()


async def test_it_answers_from_its_beginning_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that asks as soon as it is the writer is told so: else it would begin, and shut it out."""
    claim, heard = JetStreamLink.claim, []

    async def asked(link: JetStreamLink, subject: str, former: int, payload: bytes) -> int:
        sequence = await claim(link, subject, former, payload)
        asking = await JetStreamLink.connect(parse(url))
        heard.append(await asking.writer(5))
        await asking.close()
        return sequence

    monkeypatch.setattr(JetStreamLink, "claim", asked)
    provider = await reopened(url)
    assert heard == [provider._writer._who]
    await provider.close()


async def test_both_write(url: str, provider: JetStreamProvider, deaf: None) -> None:
    """What one writes while another starts is read by that one, or refused: nothing is lost, nothing there twice."""
    confirmed: list[int] = []

    async def write() -> None:
        for number in range(1, 10_000):
            await provider.commit(group(number))
            confirmed.append(number)

    writing = asyncio.ensure_future(write())
    while len(confirmed) < 50:
        await asyncio.sleep(0)
    following = await reopened(url)
    with pytest.raises(InternalError, match="has begun to write"):
        await asyncio.wait_for(writing, 10)
    assert list(await alive(following)) == confirmed
    await following.close()


async def test_it_comes_back_at_once(nats: Servers, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle writer whose connection ends has another, whenever it would have looked."""
    monkeypatch.setattr("services.store.providers.jetstream_writer._LOOK_SECONDS", 60.0)
    proxy = Proxy(nats.each[0].port)
    await proxy.start()
    provider = JetStreamProvider(Path(), url.replace(f":{nats.each[0].port}/", f":{proxy.port}/"))
    await provider.open()
    former = provider._writer.link
    for writer in proxy._writers:
        writer.transport.abort()
    async with asyncio.timeout(10):
        while provider._writer.link in {None, former}:
            await asyncio.sleep(0.01)
    await provider.close()
    await proxy.stop()


async def test_renewals_do_not_wait_for_a_connection(
    provider: JetStreamProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another one is made, which takes seconds where a server is silent, no lease lapses."""
    connecting, answered = asyncio.Event(), asyncio.Event()

    async def slow(_: object) -> JetStreamLink:
        connecting.set()
        await answered.wait()
        raise Lost("it says nothing")

    monkeypatch.setattr(JetStreamLink, "connect", slow)
    assert provider._writer.link
    await provider._writer.link.close()
    await asyncio.wait_for(connecting.wait(), 5)
    await asyncio.wait_for(provider.sure(), 0.5)
    assert "is away since" in provider.trouble()
    answered.set()
