"""Bits that flip in files: found by the checksums of pages, before anything is read there."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from services.common.clock import monotonic
from services.mgmt.ledger.pace import no_rest
from services.mgmt.ledger.parquet import read, write
from services.mgmt.ledger.schema import STAGES
from services.mgmt.lookup import pages
from services.mgmt.lookup.answers import Answers
from services.mgmt.lookup.database import Database, Part
from services.mgmt.lookup.pages import FAULTS, Pages, Wanted
from tests.support.ledger_files import NOON, LedgerFiles, uid

COLUMNS = "first_uid, last_uid, uids, stage, queue, time"


def _file(folder: Path, number: int) -> Path:
    """Of 300 rows, as mgmt writes it."""
    rows = LedgerFiles(folder)
    for message in range(300):
        rows.stage("enqueued", uid(1000 * number + message), at=message, queue=f"q{message % 7}")
    hour = folder / "stages" / f"{datetime.fromtimestamp(NOON / 1e6, UTC):date=%Y-%m-%d/hour=%H}"
    hour.mkdir(parents=True, exist_ok=True)
    path = hour / f"{number}.parquet"
    write(rows.tables()["stages"].select(STAGES.names).cast(STAGES), "stages", path, no_rest)
    return path


def _rows(opened: Database) -> list[Any]:
    opened.offer({})
    return sorted(map(str, opened.select("stages", COLUMNS, "first_uid > 0", {}, opened.hours("stages"))))


def _flip(path: Path, whole: bytes, bit: int) -> None:
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    path.write_bytes(flipped)


def _bits(path: Path, column: str) -> range:
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    [chunk] = [chunk for chunk in chunks if chunk.path_in_schema == column]
    begin, size = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
    return range(8 * begin, 8 * (begin + size), 8 * size // 20 | 1)


@pytest.mark.parametrize("column", ["queue", "stage", "uids.list.element.first", "time", "first_uid"])
def test_a_bit_that_flipped(tmp_path: Path, column: str) -> None:
    """The file is passed over and named, unless nothing that matters has changed; the other one is read."""
    _file(tmp_path, 1)
    opened = Database(tmp_path)
    others = _rows(opened)
    path = _file(tmp_path, 2)
    whole, sound, named = path.read_bytes(), _rows(opened), 0
    assert len(sound) == 2 * len(others)
    for bit in _bits(path, column):
        _flip(path, whole, bit)
        found = _rows(opened)
        assert found == (others if opened.damaged else sound)
        named += len(opened.damaged)
    assert named >= 10
    path.write_bytes(whole)
    assert (_rows(opened), opened.damaged) == (sound, [])


def test_only_what_is_read_is_looked_at(tmp_path: Path) -> None:
    """Damage in a column that is not asked for, or in a row group that has nothing of it, does no harm."""
    path = _file(tmp_path, 1)
    pages = Pages()
    _flip(path, path.read_bytes(), _bits(path, "queue").stop - 8)

    def verify(*columns: str, **wanted: Any) -> None:
        pages.verify(str(path), 1, Wanted(frozenset(columns), **wanted), lambda: True)

    verify("stage", "time")
    verify("queue", uids=[(uid(5000), uid(6000))])
    verify("queue", within={"stage": ("taken_over", "taken_over")})
    with pytest.raises(FAULTS):
        verify("stage", "queue", uids=[(uid(1001), uid(1001))])


def test_once(tmp_path: Path) -> None:
    """What was looked at is not looked at again, unless there is another file of the name."""
    path, pages = _file(tmp_path, 1), Pages()
    wanted = Wanted(frozenset({"queue"}))
    pages.verify(str(path), 1, wanted, lambda: False)  # broken off
    pages.verify(str(path), 1, wanted, lambda: True)
    _flip(path, path.read_bytes(), _bits(path, "queue").stop - 8)
    pages.verify(str(path), 1, wanted, lambda: True)
    pages.verify(str(path), 1, wanted._replace(uids=[(uid(1001), uid(1001))]), lambda: True)
    with pytest.raises(FAULTS):
        pages.verify(str(path), 2, wanted, lambda: True)


def test_footers_are_let_go(tmp_path: Path) -> None:
    """As soon as they have been read: mgmt collects no garbage, and grew by gigabytes in a thousand look-ups."""
    rows, path = LedgerFiles(tmp_path), _file(tmp_path, 1)
    rows.named("one", uid(1001))
    rows.file()
    opened = Database(tmp_path)
    gc.collect()
    gc.disable()
    try:
        opened.offer({})
        assert opened.named("one", opened.hours("ids"), 1)
        about = (NOON, NOON + 60_000_000)
        assert opened.select(
            "stages", COLUMNS, "first_uid > 0", {}, opened.hours("stages"), having=uid(1001), time_us=about
        )
        read(path, "stages", no_rest)
        kept = [each for each in gc.get_objects() if isinstance(each, pq.FileMetaData)]
    finally:
        gc.enable()
    assert kept == []


def test_numbers_are_no_columns() -> None:
    """So that what is looked at for one message need not be looked at again for the next."""
    part = Part("ids", "kind, id", "(first_uid <= 17 and last_uid >= 17)", [])
    assert part.wanted.columns >= {"kind", "id", "first_uid", "last_uid"}
    assert part.wanted == part._replace(condition="(first_uid <= 18 and last_uid >= 18)").wanted


def test_memory_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each look-up, also where all files are known."""
    given: list[None] = []
    monkeypatch.setattr("services.mgmt.lookup.answers.give_back", lambda: given.append(None))
    _file(tmp_path, 1)
    answers = Answers(tmp_path, monotonic)
    for _ in range(2):
        assert answers.trace(str(uid(1001)), 1, everything=False, payloads=False, unfiled={}).journeys
    assert len(given) == 2


def test_one_column_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is looked at: a row group of all columns takes ten times the memory."""
    read: list[list[str]] = []
    whole = pq.ParquetFile.read_row_group

    def read_row_group(self: pq.ParquetFile, group: int, columns: list[str], **options: Any) -> Any:
        read.append(columns)
        return whole(self, group, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", read_row_group)
    monkeypatch.setattr(pages, "is_as_written", lambda *_: False)
    Pages().verify(str(_file(tmp_path, 1)), 1, Wanted(frozenset({"stage", "queue", "uids"})), lambda: True)
    assert read == [["queue"], ["stage"], ["uids"]]


def test_a_name_of_a_column_is_damaged(tmp_path: Path) -> None:
    """Footers have no checksum: a file in which a column has another name is passed over and named, the other is read;
    also where it is the only one.
    """
    path = _file(tmp_path, 1)
    opened = Database(tmp_path)
    whole = path.read_bytes()
    for column in ("stage", "queue", "uids"):
        path.write_bytes(whole.replace(column.encode(), column[:-1].encode() + b"X"))
        assert (_rows(opened), len(opened.damaged)) == ([], 1)
    _file(tmp_path, 2)
    others = _rows(opened)
    assert (len(others), len(opened.damaged)) == (300, 1)
    path.write_bytes(whole)
    assert (len(_rows(opened)), opened.damaged) == (600, [])


@pytest.mark.parametrize(("without", "more"), [(["target"], []), ([], ["later"])])
def test_of_another_release(tmp_path: Path, without: list[str], more: list[str]) -> None:
    """A file that lacks a column, or has one more, is not damaged."""
    path = _file(tmp_path, 1)
    table = pq.read_table(path).drop_columns(without)
    for name in more:
        table = table.append_column(name, table["queue"])
    pq.write_table(table, path)
    known = frozenset(STAGES.names)
    Pages().verify(str(path), 1, Wanted(known, known=known), lambda: True)
