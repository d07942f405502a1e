"""The filer between a real bus and a real folder, under a lease of a store in this process."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nats
import pytest
from structlog.testing import capture_logs

from services.common import disk
from services.common.bus.nats_link import Away
from services.common.disk import Room
from services.common.ledger import stream
from services.mgmt.ledger import filer as filer_module
from services.mgmt.ledger import instances
from services.mgmt.ledger.cabinet import Cabinet, seen
from services.rpc.ledger_pb2 import RECEIVED, Captured
from tests.support.filing_office import Office, opened, until
from tests.support.small_disk import fill, small_disk


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened(tmp_path) as office:
        yield office


async def test_rows_are_offered_at_once_and_filed_soon(office: Office) -> None:
    """A row can be looked up before it is on file, and is on file after the time that is set."""
    filer = office.join()
    office.tell("a", 7)
    await until(lambda: "stages" in filer.pending() or office.uids())
    await until(office.uids)
    await until(lambda: not filer.pending())
    assert office.uids() == [7]


async def test_why_nothing_is_filed(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller is told what keeps the rows from being filed, until they are."""
    full = OSError(errno.ENOSPC, "No space left on device")

    def write(*_: object) -> None:
        raise full

    with monkeypatch.context() as patched:
        patched.setattr(Cabinet, "create", write)
        filer = office.join()
        office.tell("a", 7)
        await until(lambda: filer.trouble)
        folder = office.settings.data / "ledger"
        assert filer.trouble == f"{full.strerror}: make room for {folder} of mgmt, it goes on by itself"
    await until(office.uids)
    await until(lambda: not filer.trouble)


async def test_the_record_gives_way_to_messages(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short of room the oldest hours go, nothing is filed and NATS beside it keeps little; then all goes on."""
    monkeypatch.setattr(filer_module, "_LOW_SECONDS", 0.05)
    filer = office.join()
    office.tell("a", 1)
    await until(lambda: office.uids() == [1])
    (office.settings.data / "nats").mkdir()
    old = office.settings.data / "ledger/stages/date=2020-01-01/hour=07"
    old.mkdir(parents=True)
    (filed,) = (office.settings.data / "ledger").glob("stages/*/*/*.parquet")
    shutil.copy(filed, old / "hour-1.parquet")
    with monkeypatch.context() as patched:
        patched.setattr(disk, "room", lambda _: Room(100 << 20, 1000 << 20))
        await until(lambda: filer.trouble)
        assert "gives way" in filer.trouble
        await until(lambda: not old.exists())
        assert office.uids() == [1]
        await office.until_stream_bytes(1 << 20)
        office.tell("a", 2)
        await asyncio.sleep(0.6)
        assert office.uids() == [1]
    await until(lambda: office.uids() == [1, 2])
    await office.until_stream_bytes(office.settings.ledger_stream_bytes)
    assert not filer.trouble


async def test_a_full_disk_of_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have one of its own: why nothing is filed is said, with the folder; rows wait until there is room."""
    monkeypatch.setattr(filer_module, "_LOW_SECONDS", 0.05)
    with small_disk(tmp_path / "ledger", 8) as small:
        async with opened(tmp_path) as office:
            filer = office.join()
            office.tell("a", 1)
            await until(lambda: office.uids() == [1])
            filled = fill(small)
            office.tell("a", 2)
            await until(lambda: f"make room for {small} of mgmt" in filer.trouble)
            filled.unlink()
            office.tell("a", 3)
            await until(lambda: office.uids() == [1, 2, 3] and not filer.trouble)
            assert office.filed.doubled() == []
            assert office.gaps() == []


async def test_a_full_disk_of_nats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why nothing is filed is said; once there is room all goes on, with what was told before and meanwhile."""
    monkeypatch.setattr(filer_module, "_QUIET", 1.0)
    with small_disk(tmp_path / "small", 8) as small:
        async with opened(tmp_path, small) as office:
            filer = office.join()
            office.tell("a", 1)
            await until(lambda: office.uids() == [1])
            filled = fill(small)
            office.tell_much("a")
            await until(lambda: "make room on its disk" in filer.trouble)
            filled.unlink()
            office.tell("a", 50_001)
            await until(lambda: 50_001 in office.uids() and not filer.trouble)
            assert {1, 10_000, 50_001} <= set(office.uids())
            assert office.filed.doubled() == []
            assert office.gaps() == []


async def test_nats_says_that_its_disk_is_full(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """NATS has a text for that and no code: a caller is told which disk it is, and what to do."""

    async def refuse(*_: object) -> None:
        raise Away("nats: ServerError: code=500 err_code=10069 description='write meta.inf: no space left on device'")

    monkeypatch.setattr(stream, "configure", refuse)
    filer = office.join()
    await until(lambda: filer.trouble)
    assert filer.trouble == "NATS cannot write the record of messages: make room on its disk, it goes on by itself"


async def test_nats_has_no_room_for_the_record(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, and refuses the stream: a caller is not told that it is away, and is told what to do."""

    async def refuse(*_: object) -> None:
        raise Away(stream.NO_ROOM)

    monkeypatch.setattr(stream, "configure", refuse)
    filer = office.join()
    await until(lambda: filer.trouble)
    assert filer.trouble == stream.NO_ROOM


async def test_what_was_told_while_no_process_filed_is_filed(office: Office) -> None:
    """The bus keeps rows until they are filed; a filer that stops leaves nothing to be filed twice."""
    office.tell("a", 1)
    await asyncio.sleep(0.6)
    for number in range(3):
        filer = office.join(f"mgmt-{number}")
        office.tell("a", number + 2)
        await until(lambda number=number: len(office.uids()) >= number + 2)
        await office.leave(filer)
    assert office.uids() == [1, 2, 3, 4]
    assert office.filed.doubled() == []
    assert office.gaps() == []


async def test_captured_messages_are_filed_once(office: Office) -> None:
    """Beside rows, in any order, also when filing begins anew; they make no gap."""
    filer = office.join()
    for number in range(5):
        office.tell("a", number + 1)
        office.instance("a").captures.put(Captured(uid=number + 1, stage=RECEIVED, body=b"x"))
        await asyncio.sleep(0.3)
        if number == 2:
            await office.leave(filer)
            filer = office.join("mgmt-2")
    await until(lambda: len(office.filed.rows("payloads")) >= 5)
    await until(lambda: office.uids() == [1, 2, 3, 4, 5])
    await asyncio.sleep(0.5)
    assert sorted(row["uid"] for row in office.filed.rows("payloads")) == [1, 2, 3, 4, 5]
    assert not office.gaps()


async def test_of_two_only_one_files(office: Office) -> None:
    """A second filer waits for the lease, and goes on where the first one ends."""
    first, second = office.join("mgmt-1"), office.join("mgmt-2")
    office.tell("a", 1)
    await until(lambda: office.uids() == [1])
    await office.leave(first)
    office.tell("a", 2)
    await until(lambda: office.uids() == [1, 2])
    assert office.filed.doubled() == []
    await office.leave(second)


@pytest.mark.parametrize("after", [0, 1000], ids=["ended", "ended and is back"])
async def test_what_was_written_when_the_lease_ended_is_not_seen(
    office: Office, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Writing may take long: rows are filed once, by the process that holds the lease until they are visible."""
    filer = office.join()
    prepare, written = filer._cabinet.prepare, []

    def losing(tables: Any) -> Any:
        written.append(prepare(tables))
        if len(written) == 1:
            filer._lease._epoch = after
        return written[-1]

    monkeypatch.setattr(filer._cabinet, "prepare", losing)
    office.tell("a", 1)
    await until(office.uids)
    (lost,) = written[0].add
    assert not (office.settings.data / "ledger" / lost).exists()
    assert not seen(office.settings.data / "ledger" / lost).exists()
    assert office.uids() == [1]
    assert office.filed.doubled() == []


async def test_silence_is_noticed_across_a_restart(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance that vanished is a gap, one that said goodbye is not, also for a filer that never heard of either."""
    monkeypatch.setattr(instances, "SILENT_AFTER", 5.0)
    office.tell("polite", 1)
    office.tell("killed", 2)
    filer = office.join("mgmt-1")
    await until(lambda: office.uids() == [1, 2])
    await office.instance("polite").stop()
    await office.instance("killed")._tasks.stop()
    await asyncio.sleep(0.5)
    await office.leave(filer)
    with capture_logs() as logged:
        office.join("mgmt-2")
        await until(office.gaps)
        await asyncio.sleep(1.0)
    assert office.gaps() == [("killed", 2, 2, -1, "silent")]
    told = [(line["program"], line["instance"]) for line in logged if "was killed" in line["event"]]
    assert told == [("queue", "killed")]
    assert [row["since"] is not None for row in office.filed.rows("gaps")] == [True]


async def test_an_instance_that_was_cut_off_for_long(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it was missed is taken back when it is heard again; its rows of the time are filed, and none is missing."""
    monkeypatch.setattr(instances, "SILENT_AFTER", 2.0)
    office.join()
    office.tell("cut", 1)
    await until(lambda: office.uids() == [1])
    cut = office.instance("cut")
    await cut._tasks.stop()
    office.tell("cut", 2)
    await until(office.gaps)
    cut.start()
    await until(lambda: office.uids() == [1, 2] and len(office.gaps()) == 2)
    assert office.gaps() == [("cut", 2, 2, -1, "silent"), ("cut", 2, 2, 0, "heard_again")]


async def test_a_batch_that_cannot_be_read_is_a_gap(office: Office) -> None:
    """A batch that cannot be read is put on record, and holds up nothing."""
    office.tell("a", 1)
    office.join()
    await until(lambda: office.uids() == [1])
    client = await nats.connect(office.server.address)
    await client.publish("hopline.ledger.queue.b", b"\xff\xff\xff")
    await client.flush()
    await client.close()
    office.tell("a", 2)
    await until(lambda: office.uids() == [1, 2] and office.gaps())
    assert office.gaps() == [("b", 0, 0, -1, "unreadable")]


async def test_the_bus_goes_while_rows_wait_to_be_filed(office: Office) -> None:
    """Rows that were taken and not filed when the bus died are filed when it is back, once."""
    office.join()
    for uid in range(1, 6):
        office.tell("a", uid)
        await asyncio.sleep(0.15)
        if uid == 3:
            office.server.kill()
    await asyncio.sleep(1.0)
    await office.server.start()
    await until(lambda: len(office.uids()) >= 5)
    assert office.uids() == [1, 2, 3, 4, 5]
    assert office.filed.doubled() == []
    assert office.gaps() == []
