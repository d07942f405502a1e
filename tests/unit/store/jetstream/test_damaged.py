"""Somebody deletes what the store needs, or puts something beside it: it is not read as if that had never been."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.errors import InternalError
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import Link, Lost
from services.store.providers.jetstream_url import parse
from services.store.providers.jetstream_writer import Writer
from tests.support.written_groups import alive, group, reopened


async def purge(url: str, subject: str, keep: int = 0) -> None:
    link = await Link.connect(parse(url))
    await link.purge(f"{link.prefix}.{subject}", keep)
    await link.close()


async def delete(url: str, sequence: int) -> None:
    """As `nats stream rmm` does."""
    link = await Link.connect(parse(url))
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
    """Groups that were there when somebody began to write, and are gone, are missed, also behind a snapshot."""
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


async def test_a_start_that_takes_long(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever passes is waited for as long as ever, though reading what is there took longer than that."""
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
