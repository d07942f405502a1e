"""Configuration in a PostgreSQL database and messages in a stream: two store processes, killed under load."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import Any

import pytest

from services.common import grpc_channel
from services.common.errors import BrokerError, InternalError
from services.rpc.store_pb2 import Record
from services.store.choice import Choice, with_configuration
from services.store.provider import Changes, Occupied
from tests.support.elsewhere import Place, running
from tests.support.publisher import Publisher
from tests.support.took import Took
from tests.unit.store.elsewhere.test_processes import PATIENCE, Pair


@pytest.fixture(scope="module")
def database() -> Iterator[Place]:
    with running("postgres") as place:
        yield place


@pytest.fixture(scope="module")
def stream() -> Iterator[Place]:
    with running("jetstream") as place:
        yield place


@pytest.fixture
def urls(database: Place, stream: Place) -> dict[str, Any]:
    """Of an empty store, as settings."""
    database.start()
    stream.start()
    return {"store_url": stream.url(), "store_configuration_url": database.url()}


@pytest.fixture
async def pair(urls: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """The first one began to write."""
    monkeypatch.setattr(grpc_channel, "_doubts", True)  # as where there are several
    pair = Pair(tmp_path / "data", urls, urls)
    await pair.start()
    yield pair
    await pair.stop()


class Declarer:
    """Puts one record after the other; `confirmed` are those of which it was told that they are there."""

    def __init__(self, pair: Pair) -> None:
        self._store = pair.client
        self.confirmed: set[str] = set()
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        for number in count():
            await self._put(f"queue-{number}")

    async def _put(self, key: str) -> None:
        while True:
            try:
                await self._store.put_records([Record(kind="queue", key=key, value=b"{}")], [])
            except BrokerError:
                await asyncio.sleep(0.05)
            else:
                self.confirmed.add(key)
                return

    async def more(self, number: int) -> None:
        """Returns when so many more are confirmed."""
        until = len(self.confirmed) + number
        async with asyncio.timeout(PATIENCE):
            while len(self.confirmed) < until:
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def _keys(pair: Pair) -> set[str]:
    return {record.key for record in await pair.client.list_records(["queue"])}


@pytest.mark.parametrize("how", [SIGKILL, SIGTERM])
async def test_the_writer_ends(pair: Pair, how: Signals) -> None:
    """Twice, while messages and records are written: the other has all that was confirmed of either, once."""
    publisher, declarer = Publisher(pair.journal), Declarer(pair)
    for _ in range(2):
        await asyncio.gather(publisher.more(100), declarer.more(20))
        writer, took = await pair.writer(), Took(f"until the other confirms after {how.name}, configuration apart")
        writer.process.send_signal(how)
        await writer.process.wait()
        await asyncio.gather(publisher.more(20), declarer.more(5))
        took.put_down()
        assert await pair.writer() is not writer
        await writer.start()
    await publisher.stop()
    await declarer.stop()
    assert await pair.alive() == publisher.expected().keys()
    assert declarer.confirmed <= await _keys(pair)


@pytest.fixture
async def single(urls: dict[str, Any], tmp_path: Path) -> AsyncIterator[Pair]:
    """One process, which has confirmed something of both kinds."""
    single = Pair(tmp_path / "data", urls)
    await single.start()
    yield single
    await single.stop()


async def _told(single: Pair) -> tuple[str, str]:
    """Why messages wait, and why configuration does, as health has it."""
    table = await single.client.leases("queue")
    return table.unwritable, table.unchangeable


async def _until_told(single: Pair, which: int, *, wrong: bool) -> tuple[str, str]:
    async with asyncio.timeout(PATIENCE):
        while bool((told := await _told(single))[which]) != wrong:
            await asyncio.sleep(0.05)
    return told


async def test_the_database_is_away(single: Pair, database: Place) -> None:
    """Messages are confirmed meanwhile, and a declaration is when it is back, without a restart."""
    publisher, declarer = Publisher(single.journal), Declarer(single)
    await asyncio.gather(publisher.more(100), declarer.more(5))
    database.stop()
    writable, why = await _until_told(single, 1, wrong=True)
    assert writable == ""
    assert "postgresql://" in why
    before = len(declarer.confirmed)
    await publisher.more(500)
    assert len(declarer.confirmed) <= before + 1  # whose answer was on its way
    database.start()
    await asyncio.gather(publisher.more(100), declarer.more(5))
    await _until_told(single, 1, wrong=False)
    await publisher.stop()
    await declarer.stop()
    await single.processes[0].kill()
    await single.processes[0].start()
    assert await single.alive() == publisher.expected().keys()
    assert declarer.confirmed <= await _keys(single)


async def test_the_stream_is_away(single: Pair, stream: Place) -> None:
    """Declarations are confirmed meanwhile, and messages are when it is back, without a restart."""
    publisher, declarer = Publisher(single.journal), Declarer(single)
    await asyncio.gather(publisher.more(100), declarer.more(5))
    stream.stop()
    why, changeable = await _until_told(single, 0, wrong=True)
    assert changeable == ""
    assert "nats://" in why
    await declarer.more(20)
    stream.start()
    await asyncio.gather(publisher.more(100), declarer.more(5))
    await _until_told(single, 0, wrong=False)
    await publisher.stop()
    await declarer.stop()
    assert await single.alive() == publisher.expected().keys()


def _provider(urls: dict[str, Any], folder: Path) -> Any:
    chosen = with_configuration(Choice("jetstream", urls["store_url"]), urls["store_configuration_url"], "it")
    return chosen.make(folder)


async def test_two_processes_at_once(urls: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One writes to both, whatever the other has begun: that is told, and could begin again."""
    for name in ("postgres", "jetstream"):
        monkeypatch.setattr(f"services.store.providers.{name}_writer._ENDING_SECONDS", 0.3)
    both = [_provider(urls, tmp_path) for _ in range(2)]
    told = await asyncio.gather(*(each.open() for each in both), return_exceptions=True)
    assert sorted(type(each) for each in told if each) == [Occupied]
    writes, other = both[told.index(None)], both[1 - told.index(None)]
    await writes.begin_incarnation()
    assert "process" in await other.occupied()
    await writes.close()
    async with asyncio.timeout(PATIENCE):
        while await other.occupied():  # until it has heard of that
            await asyncio.sleep(0.05)
    await other.open()
    assert await other.begin_incarnation() == 2
    await other.close()


async def test_the_configuration_is_taken(urls: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    """By another process: it lets go of the messages, and says by whom."""
    monkeypatch.setattr("services.store.providers.postgres_writer._ENDING_SECONDS", 0.3)
    first, second = _provider(urls, tmp_path), _provider(urls, tmp_path)
    await first.configuration.provider.open()
    with pytest.raises(Occupied, match=r"another store process .* writes to postgresql"):
        await second.open()
    assert await second.messages.provider.occupied() == ""
    await first.configuration.provider.close()
    await second.open()
    await second.close()


@pytest.mark.parametrize("kind", ["postgres", "jetstream"])
async def test_one_place_by_two_names(
    kind: str, tmp_path: Path, database: Place, stream: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said, and not waited for: the process that writes there is this one."""
    monkeypatch.setattr(f"services.store.providers.{kind}_writer._ENDING_SECONDS", 0.3)
    place = {"postgres": database, "jetstream": stream}[kind]
    place.start()
    url = place.url()
    other = url.replace("127.0.0.1", "localhost") if "127.0.0.1" in url else url.replace("localhost", "127.0.0.1")
    assert other != url
    provider = with_configuration(Choice(kind, url), other, "it").make(tmp_path)
    with pytest.raises(InternalError, match="is where the messages are") as told:
        await provider.open()
    assert not isinstance(told.value, Occupied)
    assert await provider.messages.provider.occupied() == ""  # type: ignore[attr-defined]
    await provider.messages.provider.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("half", ["messages", "configuration"])
async def test_shut_out_of_one(urls: dict[str, Any], tmp_path: Path, database: Place, stream: Place, half: str) -> None:
    """A process that another has shut out of either of the two ends."""
    provider = _provider(urls, tmp_path)
    ended: list[BaseException] = []
    provider.watch(ended.append)
    await provider.open()
    await provider.begin_incarnation()
    place, url = (stream, urls["store_url"]) if half == "messages" else (database, urls["store_configuration_url"])
    await place.silence(getattr(provider, half).provider)
    other = place.provider(url)
    await other.open()
    group = Changes(origin=7) if half == "messages" else Changes(records={("queue", "a"): None})
    with pytest.raises(InternalError, match="another store process"):
        await provider.commit(group)
    assert len(ended) == 1
    await other.close()
    await provider.close()
