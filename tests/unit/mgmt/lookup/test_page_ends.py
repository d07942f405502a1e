"""What headers of pages say of the least and the greatest value: DuckDB passes pages over by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.mgmt.ledger.pace import no_rest
from services.mgmt.ledger.parquet import write
from services.mgmt.ledger.schema import TABLES
from services.mgmt.lookup import page_ends
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.page_ends import require_ends
from services.mgmt.lookup.raw_pages import chunk_of, pages_of
from tests.support.ledger_files import LedgerFiles, uid

ROWS = 300
SMALL = {"data_page_size": 1, "write_batch_size": 10, "write_page_checksum": True, "compression": "zstd"}
NUMBERS = [number * 7 % 101 for number in range(40)]


def _column(path: Path, name: str) -> Any:
    group = pq.read_metadata(path).row_group(0)
    return next(column for column in map(group.column, range(group.num_columns)) if column.path_in_schema == name)


def _require(path: Path, name: str) -> None:
    with path.open("rb") as raw, pq.ParquetFile(path) as file:
        require_ends(raw.fileno(), file, 0, name)


def _written(folder: Path, values: Any, **settings: Any) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table({"a": values}), path, **{**SMALL, **settings})
    return path


def _headers(path: Path, name: str) -> list[range]:
    """The bits of the header of each page."""
    chunk, found = chunk_of(_column(path, name)), []
    place = chunk.begin
    for page in pages_of(path.read_bytes()[chunk.begin : chunk.begin + chunk.size]):
        found.append(range(8 * place, 8 * (place + page.header)))
        place += page.header + len(page.data)
    return found


def _flip(path: Path, whole: bytes, bit: int) -> None:
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    path.write_bytes(flipped)


@pytest.mark.parametrize("asked", [uid(0), uid(ROWS - 1)])
def test_any_bit_of_a_header(tmp_path: Path, asked: int) -> None:
    """A message is found, or the file that has it is passed over and named: whichever bit of a header has flipped."""
    rows = LedgerFiles(tmp_path / "rows")
    for message in range(ROWS):
        rows.stage("enqueued", uid(message), at=message, queue=f"q{message % 7}")
    folder = tmp_path / "stages/date=2026-08-21/hour=12"
    folder.mkdir(parents=True)
    path = folder / "a.parquet"
    write(rows.tables()["stages"].select(TABLES["stages"].names).cast(TABLES["stages"]), "stages", path, no_rest)
    database, whole, named = Database(tmp_path), path.read_bytes(), 0
    [header] = _headers(path, "last_uid")
    for bit in header[::3]:
        _flip(path, whole, bit)
        database.offer({})
        condition = "first_uid <= $uid and last_uid >= $uid"
        found = database.select("stages", "row", condition, {"uid": asked}, database.hours("stages"), having=asked)
        assert len(found) == (0 if database.damaged else 1), bit
        named += len(database.damaged)
    assert named > len(header) / 10


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        pytest.param(pa.array(NUMBERS, pa.int64()), {"use_dictionary": False}, id="numbers"),
        pytest.param(pa.array(NUMBERS, pa.int32()), {"use_dictionary": False}, id="small numbers"),
        pytest.param(pa.array([None, *NUMBERS, None], pa.int64()), {"use_dictionary": False}, id="some null"),
        pytest.param(pa.array(NUMBERS, pa.timestamp("us", "UTC")), {"use_dictionary": False}, id="times"),
        pytest.param(pa.array([f"queue {one * 7919 % 997}" for one in NUMBERS]), {}, id="texts in a dictionary"),
        pytest.param([f"queue {n % 8}" for n in range(40)], {}, id="texts that the dictionary has too"),
        pytest.param([f"connection {n:02}" for n in range(40)], {"use_dictionary": False}, id="texts"),
        pytest.param(
            [None, *NUMBERS, None],
            {"column_encoding": {"a": "DELTA_BINARY_PACKED"}, "use_dictionary": False},
            id="deltas",
        ),
    ],
)
def test_what_a_header_says(tmp_path: Path, values: Any, settings: dict[str, Any]) -> None:
    """An end is not what the page has, in any of several pages: that is found."""
    path = _written(tmp_path, values, **settings)
    _require(path, "a")
    whole, pages = path.read_bytes(), _headers(path, "a")[-4:]
    assert len(pages) == 4
    for page in pages:
        end = page.stop // 8 - 5  # before what tells that the ends are exact: the last byte of the least
        path.write_bytes(whole[: end - 1] + bytes([whole[end - 1] ^ 4]) + whole[end:])
        with pytest.raises(ValueError, match="other ends than"):
            _require(path, "a")


@pytest.mark.parametrize("name", ["DELTA_BINARY_PACKED", "PLAIN"])
def test_a_page_between_the_others(tmp_path: Path, name: str) -> None:
    """An end that lies between those of the whole column is found too, however values are written."""
    path = _written(tmp_path, list(range(40)), column_encoding={"a": name}, use_dictionary=False)
    whole, page = path.read_bytes(), _headers(path, "a")[2]
    place = page.stop // 8 - 5 - 8  # the lowest byte of the least
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(ValueError, match="other ends than the page has"):
        _require(path, "a")


def test_long_headers(tmp_path: Path) -> None:
    """Ends that are as long as Arrow writes them are compared too."""
    path = _written(tmp_path, [f"{n:02}" + "x" * 4000 for n in range(40)], use_dictionary=False)
    _require(path, "a")
    whole = path.read_bytes()
    place = whole.rindex(b"39xx")
    path.write_bytes(whole[:place] + b"38" + whole[place + 2 :])
    with pytest.raises(ValueError, match="other ends than the footer"):
        _require(path, "a")


def test_whatever_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a damaged header or footer makes somebody raise is told as damage."""
    path = _written(tmp_path, NUMBERS)
    for failure in (KeyError(1), AttributeError("a"), IndexError()):
        monkeypatch.setattr(page_ends, "_require_told", Mock(side_effect=failure))
        with pytest.raises(ValueError, match="cannot be read"):
            _require(path, "a")


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        pytest.param(NUMBERS, {"write_statistics": False}, id="nothing said"),
        pytest.param(NUMBERS, {"compression": "gzip"}, id="compression"),
        pytest.param(NUMBERS, {"data_page_version": "2.0"}, id="version of pages"),
        pytest.param(NUMBERS, {"write_page_index": True}, id="ends elsewhere"),
        pytest.param(
            NUMBERS, {"column_encoding": {"a": "DELTA_BINARY_PACKED"}, "use_dictionary": False}, id="encoding"
        ),
        pytest.param([one / 3 for one in NUMBERS], {}, id="fractions"),
        pytest.param([one > 50 for one in NUMBERS], {}, id="booleans"),
        pytest.param(pa.array([None] * 40, pa.int64()), {"use_dictionary": False}, id="nulls"),
        pytest.param([None] * 20 + [str(one) for one in NUMBERS], {"use_dictionary": False}, id="texts, and nulls"),
        pytest.param([[one] for one in NUMBERS], {}, id="lists"),
        pytest.param(["x" * 5000, "y"] * 20, {"use_dictionary": False}, id="ends that are too long"),
    ],
)
def test_sound(tmp_path: Path, values: Any, settings: dict[str, Any]) -> None:
    """A sound file is none of these, in whatever way it is written."""
    _require(_written(tmp_path, values, **settings), "a")


def test_of_values_that_are_never_null(tmp_path: Path) -> None:
    """Their pages have nothing before the values: of these nothing is said."""
    path = tmp_path / "a.parquet"
    table = pa.table([pa.array(NUMBERS, pa.int64())], pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    pq.write_table(table, path, use_dictionary=False)
    _require(path, "a")


def test_pages_that_cannot_be_taken_apart(tmp_path: Path) -> None:
    """Whoever decodes them says whether that is damage."""
    path = _written(tmp_path, NUMBERS)
    column, whole = _column(path, "a"), path.read_bytes()
    chunk = chunk_of(column)
    path.write_bytes(whole[: chunk.begin] + b"\xff" * chunk.size + whole[chunk.begin + chunk.size :])
    _require(path, "a")
