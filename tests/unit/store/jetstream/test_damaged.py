"""What the store needs is deleted, or something foreign is added: that is noticed, and not read as the data."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.common.errors import InternalError
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_encoding import Part
from services.store.providers.jetstream_link import JetStreamLink, Lost
from services.store.providers.jetstream_url import parse
from services.store.providers.jetstream_writer import Writer
from services.store.providers.standing import Away
from tests.support.written_groups import alive, commit, group
from tests.support.written_stream import reopened


async def purge(url: str, subject: str, keep: int = 0) -> None:
    link = await JetStreamLink.connect(parse(url))
    await link.purge(f"{link.prefix}.{subject}", keep)
    await link.close()


async def delete(url: str, sequence: int) -> None:
    """As `nats stream rmm` does."""
    link = await JetStreamLink.connect(parse(url))
    await link._jetstream.delete_msg(parse(url).stream, sequence)
    await link.close()


async def refused(url: str) -> str:
    """Why it cannot be opened; said soon."""
    provider = JetStreamProvider(Path(), url)
    with pytest.raises(InternalError) as error:
        await provider.open()
    return error.value.text


@pytest.mark.timeout(20)
async def test_a_group_that_is_missing(url: str) -> None:
    """Others may be why it is not there, so it is looked for twice, and not for a minute."""
    provider = await reopened(url)
    for number in range(1, 4):
        await provider.commit(group(number))
    await provider.close()
    await delete(url, 3)
    assert "group 2 is not there, 3 is: were messages deleted? Restore a backup" in await refused(url)


@pytest.mark.timeout(20)
async def test_the_end_of_the_log(url: str) -> None:
    """Groups that were there when a process began to write, and are gone, are missed, also behind a snapshot."""
    provider = await reopened(url)
    await provider.commit(group(1))
    await provider._snapshots.take()
    await provider.commit(group(2))
    await provider.commit(group(3))
    await provider.close()
    await (await reopened(url)).close()
    await purge(url, "log.>")
    assert "the log ends with group 1, and group 3 was there: were messages deleted?" in await refused(url)


@pytest.mark.timeout(20)
async def test_a_snapshot_that_is_gone(url: str) -> None:
    """Whether all of it is, or some: it is said that a backup is needed."""
    provider = await reopened(url)
    await provider.commit(group(1))
    await provider._snapshots.take()
    await provider.close()
    await purge(url, "snapshot.>")
    assert "snapshot 1 is not whole any more: were messages deleted? Restore a backup" in await refused(url)


@pytest.fixture
async def ended(provider: JetStreamProvider) -> list[BaseException]:
    """Why the provider, which has a group and does nothing of its own accord, is not the writer any more."""
    found: list[BaseException] = []
    provider.watch(found.append)
    await provider._tasks.stop()
    await provider._writer._tasks.stop()
    await provider.commit(group(1))
    return found


async def stray(url: str, subject: str = "note", payload: bytes = b"hello") -> int:
    """A foreign message in the store's subjects."""
    link = await JetStreamLink.connect(parse(url))
    answer = await link._jetstream.publish(f"{link.prefix}.{subject}", payload)
    await link.close()
    return answer.seq


async def test_a_message_of_others(url: str, provider: JetStreamProvider, ended: list[BaseException]) -> None:
    """It ends the writer, since it may be a later release's, with what and where it is; then a start has all."""
    sequence = await stray(url)
    words = rf"does not understand: {sequence}, on hopline\.store\..*\.note\. Where it is not .* \(nats stream rmm\)"
    for _ in range(2):
        with pytest.raises(InternalError, match=words):
            await provider.commit(group(2))
    assert [str(end) for end in ended] == [provider.trouble()]
    await provider.close()
    again = await reopened(url)
    await again.commit(group(2))
    assert list(await alive(again)) == [1, 2]
    await again.close()


@pytest.mark.parametrize("more", [0, 1])
async def test_such_a_one_that_was_deleted(
    url: str, provider: JetStreamProvider, ended: list[BaseException], more: int
) -> None:
    """Before it was noticed: whether or not it was the last one, the second look ends the store; a start has all."""
    await delete(url, await stray(url))
    if more:
        await stray(url, "log.1", Part(provider._writer._id, 2, 0, 2, b"half").encode())
    with pytest.raises(Away, match="message 3 is not there any more: was it deleted"):
        await provider.commit(group(2))
    assert not ended
    with pytest.raises(InternalError, match=r"message 3 is not there any more: .* Start the store again"):
        await provider.commit(group(2))
    assert len(ended) == 1
    await provider.close()
    again = await reopened(url)
    await again.commit(group(2))
    assert list(await alive(again)) == [1, 2]
    await again.close()


async def test_a_group_that_cannot_be_read(url: str, provider: JetStreamProvider, ended: list[BaseException]) -> None:
    """It is not stepped over at the next attempt."""
    await stray(url, "log.1", Part(provider._writer._id, 2, 0, 1, b"no").encode())
    for _ in range(2):
        with pytest.raises(InternalError, match="the group at 3 cannot be read"):
            await provider.commit(group(2))
    assert len(ended) == 1


async def test_in_the_log_at_a_start(url: str, provider: JetStreamProvider) -> None:
    """There it is said, too, which it is."""
    await provider.close()
    sequence = await stray(url, "log.1")
    assert f"does not understand: {sequence}, on hopline.store." in await refused(url)


async def test_subjects_like_those_of_snapshots(url: str, provider: JetStreamProvider) -> None:
    """They disturb nothing."""
    await provider._writer.put("snapshot.x", b"")
    await provider._snapshots.take()
    assert provider._writer.loaded.mark.snapshot == 1


async def test_the_stream_is_deleted(url: str, provider: JetStreamProvider, ended: list[BaseException]) -> None:
    """It is said, and the process ends."""
    link = await JetStreamLink.connect(parse(url))
    await link._jetstream.delete_stream(parse(url).stream)
    await link.close()
    with pytest.raises(InternalError, match="the stream is not there any more: was it deleted"):
        await commit(provider, group(2))
    assert len(ended) == 1


async def test_damage_that_is_not_foreseen(
    provider: JetStreamProvider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What looks after the log and the connection says so, and goes on."""
    monkeypatch.setattr("services.store.providers.jetstream._LOOK_SECONDS", 0.01)
    monkeypatch.setattr("services.store.providers.jetstream_writer._LOOK_SECONDS", 0.01)
    monkeypatch.setattr("services.store.providers.jetstream_writer._PING_SECONDS", 0.0)

    wanted = ("what is dead stays in the stream", "cannot see whether NATS is there")

    async def broken(*_: object) -> None:
        raise ValueError("never thought of")

    with monkeypatch.context() as patch:
        patch.setattr(provider, "_shorten", broken)
        patch.setattr(provider._writer, "_ping", broken)
        said = ""
        async with asyncio.timeout(20):
            while not all(each in said for each in wanted):
                await asyncio.sleep(0.02)
                said += capsys.readouterr().out
    assert (len(provider._tasks._tasks), len(provider._writer._tasks._tasks)) == (1, 2)


async def test_a_start_that_takes_long(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later messages are waited for as long as always, though reading the present ones took longer than that."""
    monkeypatch.setattr("services.store.providers.jetstream_writer._STARTING_SECONDS", 0.2)
    begin, once = Writer._begin, iter((None,))

    async def slow(writer: Writer) -> None:
        await begin(writer)
        if next(once, 0) is None:
            await writer.close()
            monkeypatch.setattr("services.store.providers.jetstream_writer.monotonic", lambda: 1e12)
            raise Lost("a replica is behind", passing=True)

    monkeypatch.setattr(Writer, "_begin", slow)
    provider = await reopened(url)
    await provider.commit(group(1))
    assert list(await alive(provider)) == [1]
    await provider.close()
