"""Files that are written and read piece by piece are those that are written at once."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.mgmt.ledger import parquet
from services.mgmt.ledger.pace import no_rest
from services.mgmt.ledger.schema import IDS, ROW_GROUP, SORTED_BY, STAGES, TABLES
from tests.support.ledger_schema import plain

ROWS = 2 * ROW_GROUP["ids"] + 100


def ids(count: int, seed: int = 0) -> pa.Table:
    """In no order, and in chunks whose dictionaries are not the same."""
    numbers = random.Random(seed).sample(range(count), count)
    chunks = [numbers[: count // 3], numbers[count // 3 :]]
    return pa.concat_tables([_ids(chunk, kind) for chunk, kind in zip(chunks, ("message_id", "trace_id"), strict=True)])


def _ids(numbers: list[int], kind: str) -> pa.Table:
    rows = [
        {"id": f"{number % 9000}", "kind": kind, "first_uid": number, "last_uid": number, "time": number}
        for number in numbers
    ]
    return pa.Table.from_pylist(rows, IDS)


def groups(path: Path) -> list[int]:
    footer = pq.read_metadata(path)
    return [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]


def test_a_file_in_pieces_has_what_a_file_at_once_has(tmp_path: Path) -> None:
    """The same rows in the same order, with the same columns, in the same row groups."""
    rows = ids(ROWS)
    parquet.write(rows, "ids", tmp_path / "pieces", no_rest)
    whole = rows.unify_dictionaries().sort_by(SORTED_BY["ids"]).cast(plain(IDS))
    pq.write_table(whole, tmp_path / "whole", row_group_size=ROW_GROUP["ids"], store_schema=False)
    assert pq.read_table(tmp_path / "pieces").equals(pq.read_table(tmp_path / "whole"))
    assert pq.read_schema(tmp_path / "pieces").equals(plain(IDS))
    assert groups(tmp_path / "pieces") == groups(tmp_path / "whole") == [ROW_GROUP["ids"], ROW_GROUP["ids"], 100]


def test_footers_tell_what_a_row_group_has(tmp_path: Path) -> None:
    """Also of columns with dictionaries: readers leave out row groups by their smallest and largest values."""
    parquet.write(ids(ROWS), "ids", tmp_path / "file", no_rest)
    footer, rows = pq.read_metadata(tmp_path / "file"), pq.read_table(tmp_path / "file")
    for name in ("id", "kind", "first_uid"):
        statistics = footer.row_group(2).column(footer.schema.names.index(name)).statistics
        values = rows[name][-100:].to_pylist()
        assert (statistics.min, statistics.max) == (min(values), max(values))


@pytest.mark.parametrize("table", TABLES)
def test_what_was_written_is_read(tmp_path: Path, table: str) -> None:
    """A file gives its rows as they are kept in memory, also one without any."""
    rows = ids(10) if table == "ids" else TABLES[table].empty_table()
    parquet.write(rows, table, tmp_path / "file", no_rest)
    read = parquet.read(tmp_path / "file", table, no_rest)
    assert read.schema.equals(TABLES[table])
    assert read.to_pylist() == rows.sort_by(SORTED_BY[table]).to_pylist()


def test_each_column_is_followed_by_a_rest(tmp_path: Path) -> None:
    """The event loop waits for no more than a column of a row group, be it written or read."""
    rests: list[str] = []
    parquet.write(STAGES.empty_table(), "stages", tmp_path / "file", lambda: rests.append("written"))
    parquet.read(tmp_path / "file", "stages", lambda: rests.append("read"))
    assert rests.count("written") >= len(STAGES)
    assert rests.count("read") == len(STAGES)


def test_uids_at_even_steps_take_hardly_any_space(tmp_path: Path) -> None:
    """As those of each queue where messages go to a hundred queues in turn; all of them are read back."""
    uids = [[{"first": uid, "last": uid} for uid in range(queue, 100_000, 100)] for queue in range(100)]
    rows = [{"first_uid": queue, "uids": its, "successors": its} for queue, its in enumerate(uids)]
    parquet.write(pa.Table.from_pylist(rows, STAGES), "stages", tmp_path / "file", no_rest)
    assert parquet.read(tmp_path / "file", "stages", no_rest)["uids"].to_pylist() == uids
    footer = pq.read_metadata(tmp_path / "file").row_group(0)
    lists = [footer.column(number) for number in range(footer.num_columns)]
    assert sum(each.total_compressed_size for each in lists if ".element." in each.path_in_schema) < 100_000
