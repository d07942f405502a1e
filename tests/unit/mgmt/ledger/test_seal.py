"""The checksum of a file's footer: readers pass it over, and whatever flips in the footer breaks it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.mgmt.ledger.footers import opened
from services.mgmt.ledger.parquet import number_of_rows, write
from services.mgmt.ledger.schema import TABLES
from services.mgmt.ledger.seal import require_seal, seal

TABLE = "spans" if "spans" in TABLES else next(iter(TABLES))


def _rows() -> pa.Table:
    return pa.table([pa.nulls(3, field.type) for field in TABLES[TABLE]], schema=TABLES[TABLE])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    write(_rows(), TABLE, path, lambda: None)
    return path


def test_readers_pass_it_over(path: Path) -> None:
    """A sealed file is a Parquet file as others are, for Arrow and for DuckDB."""
    assert b"HOPSEAL1" in path.read_bytes()
    assert pq.read_table(path).num_rows == number_of_rows(path) == 3
    assert duckdb.execute("select count(*) from read_parquet($1)", [str(path)]).fetchall() == [(3,)]


def test_every_byte_of_a_footer(path: Path) -> None:
    """A bit that has flipped in a footer, wherever, is damage before Arrow sees it; without the bit all is well."""
    whole = path.read_bytes()
    begin = whole.index(b"HOPSEAL1") + 8
    end = len(whole) - 8  # what says how long it is, and Parquet's mark, come behind it
    for at in range(begin, end):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="its footer is damaged"):
            opened(path)
    path.write_bytes(whole)
    opened(path).close()


@pytest.mark.parametrize("bit", range(64))
def test_every_bit_behind_it(path: Path, bit: int) -> None:
    """Likewise in what says where it begins, and in Parquet's own mark: an error, and no dead process."""
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) - 8 + bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    with pytest.raises((ValueError, OSError, pa.ArrowException)):
        opened(path)


@pytest.mark.parametrize("size", [0, 3, 11, 12, 40])
def test_cut(path: Path, size: int) -> None:
    """What is no whole file passes here, and nowhere else; it cannot be sealed."""
    path.write_bytes(path.read_bytes()[:size])
    require_seal(path)
    with pytest.raises((ValueError, OSError, pa.ArrowException)):
        opened(path)
    with pytest.raises(ValueError, match="no Parquet file"):
        seal(path)


def test_without(tmp_path: Path) -> None:
    """Files of older releases, and of others, have none, and are opened."""
    path = tmp_path / "a.parquet"
    pq.write_table(_rows(), path)
    require_seal(path)
    with contextlib.closing(opened(path)) as file:
        assert file.metadata.num_rows == 3
