"""Files, crashes between any two steps, merging and retention."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.common.ledger.encoding import Sealed
from services.common.ledger.place import LedgerPlace
from services.common.ledger.row_recorder import RowRecorder
from services.mgmt.ledger import cabinet as module
from services.mgmt.ledger.cabinet import Cabinet
from services.mgmt.ledger.decode import decode
from services.mgmt.ledger.schema import TABLES
from services.mgmt.ledger.tidying import Limits, Tidying
from services.rpc.ledger_pb2 import ENQUEUED, LedgerBatch
from tests.support.ledger_schema import plain

HOUR = 1_700_000 // 3600 * 3600
FOREVER = Limits(1e6, 1 << 40)


class Crash(BaseException):
    """The process is gone."""


def rows(uids: list[int], time_s: int = HOUR) -> pa.Table:
    sealed: list[Sealed] = []
    recorder = RowRecorder("queue", "a", sealed.append)
    for uid in uids:
        recorder.record(ENQUEUED, LedgerPlace(queue=f"q{uid % 3}"), [uid])
    recorder.seal()
    batch = LedgerBatch.FromString(sealed[0].payload)
    batch.times_us[:] = [time_s * 1_000_000] * len(uids)
    return decode([batch]).stages


def opened(folder: Path) -> tuple[Cabinet, dict[str, Any]]:
    cabinet = Cabinet(folder)
    return cabinet, cabinet.open()


def file(cabinet: Cabinet, tables: dict[str, pa.Table], instances: dict[str, Any]) -> None:
    cabinet.commit(cabinet.prepare(tables), instances)


def test_until_when_all_is_told(tmp_path: Path) -> None:
    """That of each instance survives beside its state, which an older release reads as well."""
    cabinet, _ = opened(tmp_path)
    cabinet.commit(cabinet.prepare({}), {"a": {"service": "queue"}}, {"a": 50})
    again, instances = opened(tmp_path)
    assert (again.told, instances) == ({"a": 50}, {"a": {"service": "queue"}})
    again.commit(again.prepare({}))
    assert opened(tmp_path)[0].told == {"a": 50}


def step(tidying: Tidying, time: float) -> bool:
    change = tidying.prepare(time)
    if change:
        tidying.carry_out(change)
    return bool(change)


def seen(folder: Path) -> list[int]:
    found = [uid for path in Cabinet(folder).files("stages") for uid in pq.read_table(path)["first_uid"].to_pylist()]
    return sorted(found)


def crash_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Every sync, rename and removal is a step; the process ends before the next one."""
    left = iter(range(steps))

    def counted(function: Any) -> Any:
        def step(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise Crash
            return function(*arguments, **options)

        return step

    for name in ("rename", "replace", "unlink"):
        monkeypatch.setattr(Path, name, counted(getattr(Path, name)))
    monkeypatch.setattr(module, "_sync", counted(module._sync))


def test_files_have_the_columns_of_the_contract_sorted(tmp_path: Path) -> None:
    """Text is text, rows are sorted by their first uid, and files stand in folders by date and hour."""
    cabinet, _ = opened(tmp_path)
    file(cabinet, {"stages": rows([3, 1, 2])}, {})
    (path,) = cabinet.files("stages")
    assert pq.read_schema(path).equals(plain(TABLES["stages"]))
    assert pq.read_table(path)["first_uid"].to_pylist() == [1, 2, 3]
    assert path.relative_to(tmp_path).parts[:3] == ("stages", "date=1970-01-20", "hour=16")


def test_the_state_says_that_the_record_is_live(tmp_path: Path) -> None:
    """It tells when it was written, and is to be written again after a minute, also when there is nothing to file."""
    now = HOUR * 1_000_000_000
    cabinet = Cabinet(tmp_path, clock_ns=lambda: now)
    cabinet.open()
    assert cabinet.is_stale
    file(cabinet, {}, {})
    assert json.loads((tmp_path / "_state.json").read_bytes())["filed_ms"] == HOUR * 1000
    assert not cabinet.is_stale
    now += 61_000_000_000
    assert cabinet.is_stale


def test_rows_of_several_hours_go_to_their_folders(tmp_path: Path) -> None:
    """Each row is filed by its own time."""
    cabinet, _ = opened(tmp_path)
    file(cabinet, {"stages": pa.concat_tables([rows([1]), rows([2], HOUR + 3600)])}, {})
    assert [path.parent.name for path in cabinet.files("stages")] == ["hour=16", "hour=17"]


@pytest.mark.parametrize("steps", range(18))
def test_a_crash_while_filing_files_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Wherever the process ends, the next one sees the rows and their numbers, or neither, and nothing half."""
    cabinet, _ = opened(tmp_path)
    file(cabinet, {"stages": rows([1])}, {"a": 2})
    with monkeypatch.context() as patch:
        crash_after(patch, steps)
        crashed = False
        try:
            file(cabinet, {"stages": pa.concat_tables([rows([2]), rows([3], HOUR + 3600)])}, {"a": 4})
        except Crash:
            crashed = True
    _, instances = opened(tmp_path)
    assert (seen(tmp_path), instances) in (([1], {"a": 2}), ([1, 2, 3], {"a": 4}))
    assert crashed or instances == {"a": 4}
    assert not list(tmp_path.glob("stages/*/*/.*"))


@pytest.mark.parametrize("steps", range(18))
def test_a_crash_while_merging_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Wherever the process ends, the next one sees every row of the hour once."""
    cabinet, _ = opened(tmp_path)
    for uid in (3, 1, 2):
        file(cabinet, {"stages": rows([uid])}, {})
    with monkeypatch.context() as patch:
        crash_after(patch, steps)
        with suppress(Crash):
            step(Tidying(cabinet, FOREVER), HOUR + 4000)
    opened(tmp_path)
    assert seen(tmp_path) == [1, 2, 3]


def test_files_of_an_hour_that_is_over_become_one(tmp_path: Path) -> None:
    """Merged rows are those that were filed, sorted, and the hour that runs is left alone."""
    cabinet, _ = opened(tmp_path)
    for uid in (3, 1, 2):
        file(cabinet, {"stages": rows([uid])}, {})
        file(cabinet, {"stages": rows([uid + 10], HOUR + 3600)}, {})
    tidying = Tidying(cabinet, FOREVER)
    while step(tidying, HOUR + 4000):
        pass
    first, *others = cabinet.files("stages")
    assert pq.read_table(first)["first_uid"].to_pylist() == [1, 2, 3]
    assert pq.read_table(first)["queue"].to_pylist() == ["q1", "q2", "q0"]
    assert pq.read_schema(first).equals(plain(TABLES["stages"]))
    assert len(others) == 3
    assert seen(tmp_path) == [1, 2, 3, 11, 12, 13]


@pytest.mark.parametrize("left", ["", '{"instances": {"a', "[]", "{}", '{"instances": 7, "add": [], "remove": []}'])
def test_a_damaged_state(tmp_path: Path, left: str) -> None:
    """It is named, with what to do; and whoever removes it files again."""
    path = tmp_path / "_state.json"
    path.write_text(left)
    with pytest.raises(ValueError, match=f"^{path} is damaged: restore it; or remove it"):
        opened(tmp_path)
    path.unlink()
    assert opened(tmp_path)[1] == {}


@pytest.mark.parametrize("left", [0.5, 0.9, None])
def test_a_damaged_file_is_not_merged(tmp_path: Path, left: float | None) -> None:
    """It stays as it is, cut off or damaged inside, and the others of its hour and of the next become one."""
    cabinet, state = opened(tmp_path)
    for uid in range(6):
        file(cabinet, {"stages": rows([uid], HOUR + uid // 3 * 3600)}, state)
    damaged = next(cabinet.files("stages"))
    _damage(damaged, left)
    tidying = Tidying(cabinet, FOREVER)
    for _ in range(4):
        step(tidying, HOUR + 10_000)
    files = list(cabinet.files("stages"))
    assert [pq.read_metadata(path).num_rows for path in files if path != damaged] == [2, 3]
    assert damaged in files
    assert not list(tmp_path.rglob(".*"))


def _damage(path: Path, left: float | None) -> None:
    whole = path.read_bytes()
    if left is None:
        chunk = pq.read_metadata(path).row_group(0).column(0)
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        end = begin + chunk.total_compressed_size
        path.write_bytes(whole[:begin] + b"\xff" * (end - begin) + whole[end:])
    else:
        path.write_bytes(whole[: int(len(whole) * left)])


def test_old_files_go_by_age_and_by_size(tmp_path: Path) -> None:
    """Hours older than the limit go, then the oldest until what is left is small enough; the last hour stays."""
    cabinet, _ = opened(tmp_path)
    for hour in range(5):
        file(cabinet, {"stages": rows([hour], HOUR + hour * 3600)}, {})
    now = HOUR + 4 * 3600
    by_age = Tidying(cabinet, Limits(3.5 / 24, 1 << 40))
    assert step(by_age, now)
    assert not step(by_age, now)
    assert seen(tmp_path) == [1, 2, 3, 4]
    size = sum(path.stat().st_size for path in cabinet.files("stages"))
    by_size = Tidying(cabinet, Limits(1e6, size // 2))
    while step(by_size, now):
        pass
    assert seen(tmp_path) == [3, 4]
    while step(Tidying(cabinet, Limits(1e6, 1)), now):
        pass
    assert seen(tmp_path) == [4]
    assert len(list(tmp_path.glob("stages/*/*"))) == 1


def test_a_clock_that_is_wrong(tmp_path: Path) -> None:
    """Nothing is old because a clock says so: it is when newer rows have come since."""
    cabinet, _ = opened(tmp_path)
    for hour in range(3):
        file(cabinet, {"stages": rows([hour], HOUR + hour * 3600)}, {})
    by_age = Tidying(cabinet, Limits(3.5 / 24, 1 << 40))
    assert not step(by_age, HOUR + 400 * 86_400)
    assert seen(tmp_path) == [0, 1, 2]


def payloads(size: int, time_s: int) -> pa.Table:
    """A captured message whose body is not made smaller by being packed."""
    row = {"time": time_s * 1_000_000, "uid": 1, "properties": b"", "body": os.urandom(size), "size": size}
    return pa.Table.from_pylist([row], TABLES["payloads"])


def test_captured_messages_are_bounded_apart(tmp_path: Path) -> None:
    """They go by their own age and size, file by file, also in the hour that runs; they are not merged."""
    cabinet, _ = opened(tmp_path)
    for minute in range(4):
        file(cabinet, {"payloads": payloads(10_000, HOUR + 60 * minute), "stages": rows([minute + 1])}, {})
    # Files are not all of one size: a checksum takes more bytes or fewer.
    size = sum(path.stat().st_size for path in cabinet.files("payloads")) + 200
    newest = list(cabinet.files("payloads"))[2:]
    by_size = Tidying(cabinet, Limits(1e6, 1 << 40, payload_bytes=size // 2))
    assert step(by_size, HOUR + 300)
    assert list(cabinet.files("payloads")) == newest
    assert not step(by_size, HOUR + 300)
    by_age = Tidying(cabinet, Limits(1e6, 1 << 40, payload_days=2 / 24))
    while step(by_age, HOUR + 2 * 3600):
        pass
    assert list(cabinet.files("payloads")) == newest, "two files of an hour that is over"
    file(cabinet, {"stages": rows([9], HOUR + 4 * 3600)}, {})
    assert step(by_age, HOUR + 4 * 3600)
    assert not list(cabinet.files("payloads"))
    assert seen(tmp_path) == [1, 2, 3, 4, 9]


def test_captured_messages_give_way_first(tmp_path: Path) -> None:
    """On a full disk they go, all of them, before any hour of the record; no other user may look at them."""
    cabinet, _ = opened(tmp_path)
    file(cabinet, {"payloads": payloads(10, HOUR), "stages": rows([1])}, {})
    file(cabinet, {"stages": rows([2], HOUR + 3600)}, {})
    assert (tmp_path / "payloads").stat().st_mode & 0o077 == 0
    tidying = Tidying(cabinet, FOREVER)
    change = tidying.give_way()
    assert change is not None
    assert [Path(name).parts[0] for name in change.remove] == ["payloads"]
    tidying.carry_out(change)
    assert seen(tmp_path) == [1, 2]
