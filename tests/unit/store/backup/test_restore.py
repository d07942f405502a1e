"""Restoring: everything is there, nothing that was given is given again, and former processes are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner

from services.__main__ import app
from services.common import secret
from services.common.config import Settings
from services.common.errors import BrokerError, Fenced, InternalError, PreconditionFailed
from services.common.restored import RECORD_KEY, Restored
from services.rpc.store_pb2 import Fence, JournalFrame, KeepAliveRequest, PutRecordsRequest, Record, RecoverRequest
from services.store.folder import UNFINISHED, DataFolder
from services.store.recovery import recover
from services.store.service import Service
from tests.support.backups import back_up, restore, restored
from tests.support.kept import everything
from tests.support.store_house import House, dequeue, enqueue

GIVEN_ANEW = {"leases", "origin", "records"}


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} if folder.exists() else set()


def damage(file: Path, place: float) -> None:
    whole = bytearray(file.read_bytes())
    whole[int(len(whole) * place)] ^= 1
    file.write_bytes(whole)


async def test_everything_is_there(house: House, file: Path, tmp_path: Path) -> None:
    """Each kind of thing is as it was, but for what must not be given again; and a record says since when."""
    before = await everything(house.provider)
    new = await restored(file, tmp_path / "new")
    after = await everything(new.provider)
    assert {name for name in before if before[name] != after[name]} == GIVEN_ANEW
    records = {(row.kind, row.key): row for row in after["records"]}
    note = Restored.model_validate_json(records.pop(("store", RECORD_KEY)).value)
    assert (note.generation, sorted(records.values())) == (2, before["records"])
    assert tree(tmp_path / "new") == {"hopline.db", "hopline.db-wal", "hopline.db-shm", "hopline.spare", "store.lock"}
    await new.stop()


async def test_former_processes_are_fenced(house: House, file: Path, tmp_path: Path) -> None:
    """Owners from after the backup are refused; leases are free, and taken at epochs that were never given."""
    (backed_up,) = (row.epoch for row in await house.provider.leases() if row.name == "partition/1")
    await house.acquire(member="m1", release=["partition/1"])
    late = (await house.acquire("partition/1", "partition/3", member="m2")) | {"partition/2": backed_up}
    assert late["partition/1"] > backed_up
    new = await restored(file, tmp_path / "new")
    for name, epoch in late.items():
        fence = Fence(lease=name, epoch=epoch)
        assert list((await new.append(JournalFrame(fences=[fence]), writer=1 << 20)).fenced) == [name]
        with pytest.raises(Fenced):
            await anext(recover(new.provider, new.engine.epochs, RecoverRequest(partition=1, fence=fence)))
    taken = await new.acquire(*late, member="m1")
    assert set(taken) == set(late)
    assert min(taken.values()) > max(late.values()) + 1000
    assert not (
        await new.append(dequeue(10, 0, fences=[Fence(lease="partition/1", epoch=taken["partition/1"])]))
    ).fenced
    await new.stop()


async def test_a_former_router_is_refused(house: House, file: Path, tmp_path: Path) -> None:
    """A router of after the backup cannot write topology, before another has the lease and after."""
    before = {row.name: row.epoch for row in await house.provider.leases()}["router"]
    new = await restored(file, tmp_path / "new")
    for _ in range(2):
        for epoch in range(before, before + 3):
            request = PutRecordsRequest(puts=[Record(kind="queue", key="q")], fence=Fence(lease="router", epoch=epoch))
            with pytest.raises(Fenced):
                await new.engine.records.put(request)
        await new.acquire("router", role="router")
    await new.stop()


async def test_nothing_is_given_twice(house: House, file: Path, tmp_path: Path) -> None:
    """Origins and versions are above all that the store gave after the backup, restarts and all."""
    given = [await house.engine.origins.allocate() for _ in range(50)]
    await house.restart()
    version = await house.engine.records.put(PutRecordsRequest(puts=[Record(kind="queue", key="late")]))
    table = await house.engine.leases.keep_alive(_nothing())
    new = await restored(file, tmp_path / "new")
    assert await new.engine.origins.allocate() > max(given) + 1000
    assert await new.engine.records.put(PutRecordsRequest(puts=[Record(kind="queue", key="q")])) > version
    assert (await new.engine.leases.keep_alive(_nothing())).version > table.version
    await new.stop()


async def test_publishers_that_lived_on(house: House, file: Path, tmp_path: Path) -> None:
    """What came after the backup and is sent again is new; what was settled by then is still known as taken."""
    new = await restored(file, tmp_path / "new")
    epochs = await new.acquire("partition/1")
    fence = Fence(lease="partition/1", epoch=epochs["partition/1"])
    # The writer's own count goes on from where it was: what it sends now is no repetition.
    assert not (await new.append(enqueue(50, 2, fences=[fence]), writer=1, sequence=1_000)).fenced
    assert (await new.alive())[50] == [0, 1]
    (marks, *_) = await new.recovered(1, fence)
    assert [(taken.origin, taken.upto) for taken in marks.taken] == []  # the floor of batch 50 is above
    await new.stop()
    again = await restored(file, tmp_path / "again")
    (marks, *_) = await again.recovered(1)
    assert [(taken.origin, taken.upto) for taken in marks.taken] == [(7, 40)]
    await again.stop()


async def test_twice(house: House, file: Path, tmp_path: Path) -> None:
    """A backup of a restored store makes the generation after that, and begins above it."""
    second = await restored(file, tmp_path / "second")
    given = await second.engine.origins.allocate()
    later = await back_up(second, tmp_path / "two.backup")
    await second.stop()
    outcome = await restore(later, tmp_path / "third")
    assert outcome.restored.generation == 3
    third = House("sqlite", tmp_path / "third")
    await third.start()
    assert await third.engine.origins.allocate() > given
    await third.stop()


async def test_the_same_again_in_its_place(house: House, file: Path, tmp_path: Path) -> None:
    """What the replaced store gave is not given again, though the backup knows nothing of it; it is put aside."""
    folder = tmp_path / "new"
    first = await restored(file, folder)
    epoch = (await first.acquire("partition/1"))["partition/1"]
    origin = await first.engine.origins.allocate()
    await first.append(enqueue(70, 1), writer=origin)
    await first.stop()
    with pytest.raises(PreconditionFailed, match="--replace"):
        await restore(file, folder)
    second = await restored(file, folder, replace=True)
    assert (await second.acquire("partition/1"))["partition/1"] >= epoch + (1 << 18)
    assert await second.engine.origins.allocate() >= origin + (1 << 17)
    assert 70 not in await second.alive()
    await second.stop()
    (aside,) = folder.glob("replaced-*")
    old = House("sqlite", aside)
    await old.start()
    assert 70 in await old.alive()
    await old.stop()


async def test_a_store_that_cannot_be_read_is_replaced(file: Path, tmp_path: Path) -> None:
    """Rubbish in the place of the store is put aside as it is, and nothing of it is taken for the new one's log."""
    folder = tmp_path / "broken"
    folder.mkdir()
    for name in ("hopline.db", "hopline.db-wal"):
        (folder / name).write_bytes(b"rubbish" * 1000)
    new = await restored(file, folder, replace=True)
    assert 10 in await new.alive()
    await new.stop()
    (aside,) = folder.glob("replaced-*")
    assert (aside / "hopline.db").read_bytes() == b"rubbish" * 1000


async def test_a_store_that_runs(file: Path, tmp_path: Path) -> None:
    """Its folder is not touched, also with --replace."""
    with DataFolder(tmp_path / "store").held():
        before = tree(tmp_path / "store")
        with pytest.raises(InternalError, match="another store runs"):
            await restore(file, tmp_path / "store", replace=True)
        assert tree(tmp_path / "store") == before


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
async def test_a_damaged_backup_writes_nothing(file: Path, tmp_path: Path, place: float) -> None:
    """Not even the folder."""
    damage(file, place)
    with pytest.raises(PreconditionFailed, match="damaged"):
        await restore(file, tmp_path / "new")
    assert tree(tmp_path / "new") == set()


async def test_a_provider_without_a_folder(file: Path, tmp_path: Path) -> None:
    """Nothing can be restored to where nothing stays."""
    with pytest.raises(PreconditionFailed, match="HOPLINE_STORE_PROVIDER"):
        await restore(file, tmp_path / "new", provider="memory")


async def test_a_clock_that_is_behind(file: Path, tmp_path: Path) -> None:
    """By the age of the backup it is known how much was given since: one of the future is refused, unless by little."""
    await restore(file, tmp_path / "soon", later=-60_000)
    with pytest.raises(PreconditionFailed, match="set the clock"):
        await restore(file, tmp_path / "new", later=-3_600_000)


async def test_what_fails_leaves_all_as_it_was(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full in between: the command says so, and the folder is as before."""
    folder = tmp_path / "new"
    first = await restored(file, folder)
    await first.stop()
    before = tree(folder)

    async def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("services.store.providers.sqlite.SQLiteProvider.commit", full)
    with pytest.raises(BrokerError, match="No space left"):
        await restore(file, folder, replace=True)
    assert tree(folder) == before


async def test_half_a_restore_is_no_store(file: Path, tmp_path: Path) -> None:
    """Where files were being exchanged when the machine died no store starts; the restore, done again, mends it."""
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / UNFINISHED).touch()
    with pytest.raises(InternalError, match="not finished: do it again"):
        DataFolder(folder).take()
    new = await restored(file, folder)
    await new.stop()
    with DataFolder(folder).held():
        assert UNFINISHED not in tree(folder)


async def test_a_restore_needs_no_secret(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It calls no service: it works also without the stack's secret, as in the pod for it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOPLINE_SECRET_FILE", str(tmp_path / "file" / "secret"))
    command = ["store", "restore", str(file), "--to", str(tmp_path / "new")]
    result = await asyncio.to_thread(CliRunner().invoke, app.whole, command)
    secret.use("")
    assert (result.exit_code, result.stderr) == (0, "")


async def test_the_store_says_so(file: Path, tmp_path: Path) -> None:
    """Each start of a restored store says of when it is, and what is missing."""
    await restore(file, tmp_path / "new")
    service = Service(Settings(data=tmp_path / "new"))
    with structlog.testing.capture_logs() as logs:
        await service.start()
    await service.stop()
    (said,) = [line["event"] for line in logs if line["event"].startswith("restored at ")]
    assert "generation 2: messages confirmed in between are not here" in said
    assert "messages acknowledged in between come again" in said


def _nothing() -> KeepAliveRequest:
    return KeepAliveRequest(member="m9", role="queue", address="a")


async def test_under_load(house: House, tmp_path: Path) -> None:
    """All that was confirmed before the backup began is in it, while commits go on."""
    ended = asyncio.Event()
    confirmed: list[int] = []

    async def load() -> None:
        number = 1000
        while not ended.is_set():
            await house.append(enqueue(number, 1))
            confirmed.append(number)
            number += 1

    writing = asyncio.get_running_loop().create_task(load())
    while len(confirmed) < 20:
        await asyncio.sleep(0)
    before = list(confirmed)
    file = await back_up(house, tmp_path / "two.backup")
    ended.set()
    await writing
    new = await restored(file, tmp_path / "new")
    alive = await new.alive()
    assert set(before) <= set(alive)
    assert {number for number in alive if number >= 1000} == set(range(1000, max(alive) + 1))
    await new.stop()
