"""Telling the bus: through its loss, in order, nothing twice, and with an account of what was given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import pytest
from nats.js.errors import NotFoundError

from services.common.bus.nats_link import NatsLink, TooLarge
from services.common.config import Settings
from services.common.ledger import stream
from services.common.ledger.ledger import Ledger
from services.common.ledger.place import LedgerPlace
from services.common.ledger.recorder import OFF
from services.mgmt.ledger.instances import Gap, Instances
from services.rpc.ledger_pb2 import ENQUEUED, LedgerBatch
from tests.support.nats_server import NatsServer
from tests.support.programs import until

PLACE = LedgerPlace("/", queue="q")
SUBJECT = stream.subject_of("queue", "queue-1-a")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    server = NatsServer(tmp_path)
    await server.start()
    yield server
    server.kill()


def ledger_for(server: NatsServer, tmp_path: Path, buffer: int = 1 << 20) -> Ledger:
    return Ledger(Settings(data=tmp_path, nats_url=server.address, ledger_buffer=buffer), "queue", "queue-1-a")


async def stored(server: NatsServer, first_rows: int) -> list[LedgerBatch]:
    """The batches in the stream, when one has at least that row."""
    client = await nats.connect(server.address)
    try:
        async with asyncio.timeout(15):
            while True:
                batches = await _all(client)
                if batches and batches[-1].first_row + len(batches[-1].stages) > first_rows:
                    return batches
                await asyncio.sleep(0.1)
    finally:
        await client.close()


async def _all(client: nats.NATS) -> list[LedgerBatch]:
    context = client.jetstream()
    try:
        state = (await context.stream_info(stream.NAME)).state
        first = state.first_seq or 1  # 0 and 0 of a stream that has had none
        messages = [await context.get_msg(stream.NAME, seq) for seq in range(first, state.last_seq + 1)]
    except NotFoundError:
        return []
    return [LedgerBatch.FromString(message.data or b"") for message in messages]


def heard(batches: list[LedgerBatch]) -> tuple[int, list[Gap]]:
    """How many rows are new, and the gaps."""
    instances, rows, gaps = Instances(), 0, list[Gap]()
    for batch in batches:
        is_new, noticed = instances.heard(batch, 0.0, 0.0)
        rows += len(batch.stages) * is_new
        gaps += noticed
    return rows, gaps


async def test_rows_get_to_the_stream_and_the_last_word_too(server: NatsServer, tmp_path: Path) -> None:
    """What was recorded is in the stream within moments; a service that stops tells the rest, and that it ends."""
    ledger = ledger_for(server, tmp_path)
    ledger.start()
    ledger.recorder.record(ENQUEUED, PLACE, [1])
    assert len(await stored(server, 1)) == 1
    ledger.recorder.record(ENQUEUED, PLACE, [2])
    await ledger.stop()
    batches = await stored(server, 2)
    assert [list(batch.firsts) for batch in batches] == [[1], [2], []]
    assert [batch.last for batch in batches] == [False, False, True]


async def test_nothing_is_missing_after_the_bus_was_away(server: NatsServer, tmp_path: Path) -> None:
    """Rows that were told while NATS was dead, and while it did not answer, arrive in order and once."""
    ledger = ledger_for(server, tmp_path)
    ledger.start()
    ledger.recorder.record(ENQUEUED, PLACE, [1])
    await stored(server, 1)
    server.kill()
    for uid in range(2, 5):
        ledger.recorder.record(ENQUEUED, PLACE, [uid])
        await asyncio.sleep(0.3)
    await server.start()
    await stored(server, 4)
    server.pause()
    ledger.recorder.record(ENQUEUED, PLACE, [5])
    await asyncio.sleep(3.0)
    server.resume()
    batches = await stored(server, 5)
    await ledger.stop()
    assert heard(batches) == (5, [])
    assert ledger.given_up == 0


async def test_what_is_given_up_is_a_gap_of_known_size(server: NatsServer, tmp_path: Path) -> None:
    """With more rows than the buffer holds the oldest go, and their numbers tell how many."""
    ledger = ledger_for(server, tmp_path, buffer=1 << 20)
    ledger.start()
    ledger.recorder.record(ENQUEUED, PLACE, [1])
    await stored(server, 1)
    server.kill()
    uids = range(0, 100_000, 2)
    for _ in range(20):
        ledger.recorder.record(ENQUEUED, PLACE, uids)
        await asyncio.sleep(0)
    ledger.recorder.record(ENQUEUED, PLACE, [7])
    await until(lambda: ledger.given_up)
    await asyncio.sleep(1.0)
    await server.start()
    await asyncio.sleep(1.0)
    ledger.recorder.record(ENQUEUED, PLACE, [9])
    batches = await stored(server, 43)
    await ledger.stop()
    rows, gaps = heard(batches)
    assert [gap.rows for gap in gaps] == [ledger.given_up]
    assert rows + ledger.given_up == 1 + 20 * 2 + 2


async def test_what_is_too_large_is_given_up(server: NatsServer, tmp_path: Path) -> None:
    """NATS will never take it: it is a gap, and what comes behind it gets to the stream."""
    ledger = ledger_for(server, tmp_path, buffer=8 << 20)
    ledger.start()
    ledger.recorder.record(ENQUEUED, LedgerPlace("/", queue="q", client="c" * (2 << 20)), [1])
    await asyncio.sleep(0)
    ledger.recorder.record(ENQUEUED, PLACE, [2])
    await asyncio.sleep(1.0)
    ledger.recorder.record(ENQUEUED, PLACE, [3])
    batches = await stored(server, 3)
    await ledger.stop()
    rows, gaps = heard(batches)
    assert (rows + ledger.given_up, [gap.rows for gap in gaps]) == (3, [ledger.given_up])
    assert ledger.given_up


async def test_what_is_too_large_with_its_headers(server: NatsServer, tmp_path: Path) -> None:
    """NATS ends the connection of whoever sends it, each time: it would be sent for ever."""
    link = await NatsLink.connect(server.address, "one")
    await link.set_up(lambda context: stream.ensure(context, Settings(data=tmp_path)))
    headers = {stream.MESSAGE_ID: "queue-1-ä:1"}
    line = len("NATS/1.0\r\nNats-Msg-Id: queue-1-ä:1\r\n\r\n".encode())
    with pytest.raises(TooLarge):
        await link.store(SUBJECT, bytes((1 << 20) - line + 1), headers)
    await link.store(SUBJECT, bytes((1 << 20) - line), headers)
    await link.close()


async def test_without_a_bus_or_a_ledger_nothing_is_recorded(tmp_path: Path) -> None:
    """The recorder is the one that does nothing, and starting and stopping cost nothing."""
    for settings in (Settings(data=tmp_path), Settings(data=tmp_path, nats_url="nats://127.0.0.1:1", ledger=False)):
        ledger = Ledger(settings, "queue", "a")
        ledger.start()
        assert ledger.recorder is OFF
        await ledger.stop()
