from __future__ import annotations

from pathlib import Path
from random import Random
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from services.common.trace import Trace
from services.mgmt.lookup import id_files
from services.mgmt.lookup.id_files import FAULTS, IdFiles, names_of, rows_of
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import MS, ORIGIN, LedgerFiles, uid

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("first_uid", pa.int64()),
        ("last_uid", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
    ]
)


def _table(ids: list[str]) -> pa.Table:
    numbers = list(range(len(ids)))
    return pa.table([ids, ["message_id"] * len(ids), numbers, numbers, numbers], schema=SCHEMA)


def _file(folder: Path, ids: list[str], group: int = 4) -> str:
    path = folder / "a.parquet"
    pq.write_table(_table(ids), path, row_group_size=group)
    return str(path)


def _found(path: str, name: str, most: int = 100) -> list[int]:
    return sorted(row[1] for row in IdFiles().rows([path], name, most, lambda: True))


IDS = sorted([f"id-{number:02}" for number in range(20)] + ["id-07"] * 10)


@pytest.mark.parametrize("name", ["id-00", "id-06", "id-07", "id-08", "id-19", "id-2", "a", "z", ""])
def test_every_row(tmp_path: Path, name: str) -> None:
    """An id is found in each row group that has it, however often, and nowhere else."""
    path = _file(tmp_path, IDS)
    assert _found(path, name) == [number for number, each in enumerate(IDS) if each == name]


def test_newest(tmp_path: Path) -> None:
    """Of an id that comes often the newest rows are told, of each row group; of a table too."""
    path = _file(tmp_path, ["x"] * 8)
    assert _found(path, "x", 2) == [2, 3, 6, 7]
    assert sorted(row[1] for row in rows_of(_table(["x"] * 8), "x", 2)) == [6, 7]
    assert IdFiles().rows([path], "x", 2, lambda: False) == []


def test_not_sorted(tmp_path: Path) -> None:
    """A file whose row groups are in no order is none of these."""
    with pytest.raises(FAULTS):
        _found(_file(tmp_path, ["b", "b", "a", "a"], 2), "a")


def _uids(trace: Trace) -> list[int]:
    return [journey.match.uid - ORIGIN for journey in trace.journeys]


async def test_in_any_order(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Ids are found in files that are not sorted too, beside those that are."""
    for number, name in enumerate(["b", "a", "c", "a"]):
        ledger.named(name, uid(number), at=number * MS)
    ledger.file()
    [path] = (ledger.folder / "ids").rglob("*.parquet")
    pq.write_table(pq.read_table(path), path, row_group_size=1)
    ledger.named("a", uid(9), at=9 * MS)
    ledger.file("b.parquet")
    assert _uids(await look_up.trace("a", 10)) == [9, 3, 1]


async def test_damaged(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A damaged file is passed over and named, and ids are found in the others."""
    ledger.named("a", uid(1))
    ledger.file()
    ledger.named("a", uid(2))
    ledger.file("b.parquet")
    [path] = (ledger.folder / "ids").rglob("a.parquet")
    path.write_bytes(path.read_bytes()[:-8])
    trace = await look_up.trace("a", 10)
    assert (_uids(trace), [Path(file).name for file in trace.damaged]) == ([2], ["a.parquet"])


def test_files_without_it(tmp_path: Path) -> None:
    """They are not opened again: what their footers said is known."""
    path, files = _file(tmp_path, IDS), IdFiles()
    files.rows([path], "id-00", 1, lambda: True)
    Path(path).unlink()
    assert files.rows([path], "z", 1, lambda: True) == []
    with pytest.raises(FAULTS):
        files.rows([path], "id-00", 1, lambda: True)


def test_not_decoded_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is not opened a second time for an id that it might have and has not: of random ids, every file might."""
    monkeypatch.setattr(id_files, "FEW", 0)
    path, files = _file(tmp_path, IDS), IdFiles()
    files.rows([path], "id-07", 1, lambda: True)
    monkeypatch.setattr(pq, "ParquetFile", None)
    assert files.rows([path], "id-075", 1, lambda: True) == []


def test_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a small file has is known from its second look-up on: from then on it is looked into for what it has."""
    path, files = _file(tmp_path, IDS), IdFiles()
    files.rows([path], "id-07", 1, lambda: True)
    assert files.rows([path], "id-075", 1, lambda: True) == []
    monkeypatch.setattr(id_files, "that_may_have", None)
    assert files.rows([path], "id-076", 1, lambda: True) == []
    with pytest.raises(TypeError):
        files.rows([path], "id-06", 1, lambda: True)
    monkeypatch.undo()
    assert len(files.rows([path], "id-06", 1, lambda: True)) == 1
    _replace(path, sorted([*IDS, "id-075"]))
    assert len(files.rows([path], "id-075", 1, lambda: True)) == 1


def test_some_small_files_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up learns what some have, until all are known: a day of them would take long."""
    monkeypatch.setattr(id_files, "_LEARNT_AT_ONCE", 2)
    read: list[str] = []
    ids = id_files._ids

    def read_and_note(path: str) -> list[str]:
        read.append(path)
        return ids(path)

    monkeypatch.setattr(id_files, "_ids", read_and_note)
    for number in range(5):
        (tmp_path / str(number)).mkdir()
    paths, files = [_file(tmp_path / str(number), IDS) for number in range(5)], IdFiles()
    learnt = [len(files.rows(paths, "z", 1, lambda: True)) or len(read) for _ in range(6)]
    assert learnt == [0, 2, 4, 5, 5, 5]


def _replace(path: str, ids: list[str]) -> None:
    """As a backup is put in the place of a damaged file."""
    (Path(path).parent / "backup").mkdir()
    Path(_file(Path(path).parent / "backup", ids)).replace(path)


def test_another_file_of_the_name(tmp_path: Path) -> None:
    """What is put in the place of a file is asked anew, for ids and for uids: a damaged one may be restored."""
    path, files = _file(tmp_path, IDS), IdFiles()
    assert files.rows([path], "z", 1, lambda: True) == []
    assert files.names([path], [len(IDS)], lambda: True) == []
    _replace(path, [*IDS, "z"])
    assert [row[1] for row in files.rows([path], "z", 1, lambda: True)] == [len(IDS)]
    assert [row[1] for row in files.names([path], [len(IDS)], lambda: True)] == ["z"]


@pytest.mark.parametrize("group", [1, 3, 100])
def test_names(tmp_path: Path, group: int) -> None:
    """The ids of a uid are found by all of its uids, though files are sorted by ids; also in rows of several uids."""
    rows = [("c", 5, 5), ("a", 1, 9), ("b", 7, 7), ("d", 9, 10)] + [
        (f"x{number}", number, number) for number in range(20, 60)
    ]
    ids, first, last = (list(column) for column in zip(*sorted(rows), strict=True))
    kinds, times = ["message_id"] * len(ids), [0] * len(ids)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([ids, kinds, first, last, times], schema=SCHEMA), path, row_group_size=group)

    def found(*uids: int) -> list[str]:
        names = sorted(row[1] for row in IdFiles().names([str(path)], uids, lambda: True))
        assert names == sorted(row[1] for row in names_of(pq.read_table(path), uids))
        return names

    assert [found(5), found(7), found(9), found(8), found(11)] == [["a", "c"], ["a", "b"], ["a", "d"], ["a"], []]
    assert found(5, 7, 41) == ["a", "b", "c", "x41"]
    assert IdFiles().names([str(path)], [5], lambda: False) == []


def test_names_are_not_looked_for_where_none_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is known which uids the row groups of a file have, it is opened for those only."""
    path, files = _file(tmp_path, IDS), IdFiles()
    assert files.names([path], [len(IDS)], lambda: True) == []
    monkeypatch.setattr(pq, "ParquetFile", None)
    assert files.names([path], [len(IDS), len(IDS) + 7], lambda: True) == []
    monkeypatch.undo()
    assert [row[1] for row in files.names([path], [0, len(IDS)], lambda: True)] == [IDS[0]]


def test_names_of_many() -> None:
    """Whatever rows there are, and whatever is asked for, the rows are those that name one of them."""
    random = Random(7)
    for _ in range(300):
        uids = {random.randrange(60) for _ in range(random.randrange(8))}
        ranges = [(first, first + random.choice([0, 0, 1, 9])) for first in random.choices(range(60), k=20)]
        first, last = (list(column) for column in zip(*ranges, strict=True))
        table = pa.table([["a"] * 20, ["message_id"] * 20, first, last, range(20)], schema=SCHEMA)
        expected = [one for one in ranges if any(one[0] <= uid <= one[1] for uid in uids)]
        assert [row[2:] for row in names_of(table, uids)] == expected


class _Counted:
    """A module, of which it is counted how often one asks for something of it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        self.asked += 1
        return getattr(self._module, name)


def test_as_many_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a thousand uids a table is gone through no more often than for two."""
    counted = _Counted(pc)
    monkeypatch.setattr(id_files, "pc", counted)
    table = _table([f"id-{number:04}" for number in range(2000)])
    assert len(names_of(table, [3, 5])) == 2
    of_two = counted.asked
    assert len(names_of(table, range(0, 2000, 2))) == 1000
    assert counted.asked == 2 * of_two
