"""Files of an hour that become one, part by part, are what they would be as one from the start."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.mgmt.ledger import merging, parquet
from services.mgmt.ledger.merging import merge
from services.mgmt.ledger.pace import no_rest
from services.mgmt.ledger.schema import IDS, ROW_GROUP, SORTED_BY, STAGES


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "_PART", 40)
    for table in ("ids", "stages"):
        monkeypatch.setitem(ROW_GROUP, table, 20)  # type: ignore[arg-type]  # said to be final, and is a dict


def stages(uids: Sequence[int | None]) -> pa.Table:
    rows = [{"time": uid or 0, "queue": f"q{(uid or 0) % 7}", "first_uid": uid, "row": n} for n, uid in enumerate(uids)]
    return pa.Table.from_pylist([dict.fromkeys(STAGES.names) | row for row in rows], STAGES)


def files(folder: Path, tables: Sequence[pa.Table], table: str) -> list[Path]:
    paths = [folder / f"{number}.parquet" for number in range(len(tables))]
    for path, rows in zip(paths, tables, strict=True):
        parquet.write(rows, table, path, no_rest)
    return paths


def merged(folder: Path, tables: Sequence[pa.Table], table: str = "stages") -> pa.Table:
    merge(files(folder, tables, table), table, folder / "whole", no_rest)
    return parquet.read(folder / "whole", table, no_rest)


def as_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("seed", range(5))
def test_the_same_rows_in_order(tmp_path: Path, seed: int) -> None:
    """With any keys in any files: none twice, none missing, in whole row groups."""
    chance = random.Random(seed)
    tables = [stages([chance.randrange(300) for _ in range(chance.randrange(120))]) for _ in range(6)]
    whole = merged(tmp_path, tables)
    assert as_rows(whole) == as_rows(pa.concat_tables(tables))
    keys = whole[SORTED_BY["stages"]].to_pylist()
    assert keys == sorted(keys)
    footer = pq.read_metadata(tmp_path / "whole")
    groups = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    assert set(groups[:-1]) == {20}


@pytest.mark.parametrize("uids", [[], [7] * 100, [None] * 100, [*range(50), *[None] * 60]])
def test_keys_that_are_one_or_none(tmp_path: Path, uids: list[int | None]) -> None:
    """Rows that all have one key are one part; those without a key come last."""
    whole = merged(tmp_path, [stages(uids), stages([3]), stages(uids)])
    assert as_rows(whole) == as_rows(pa.concat_tables([stages(uids), stages([3]), stages(uids)]))
    found = whole["first_uid"].to_pylist()
    assert found == sorted(found, key=lambda uid: (uid is None, uid))


def test_a_large_file_is_not_read_for_each_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an hour's file to which late rows come those row groups are read that may have rows of the part, and no more
    are in memory; all of it took mgmt half a gigabyte.
    """
    read, found = parquet.read, list[int]()

    def counting(*arguments: Any) -> pa.Table:
        rows = read(*arguments)
        found.append(len(rows))
        return rows

    monkeypatch.setattr(parquet, "read", counting)
    merge(files(tmp_path, [stages(range(400)), stages(range(390, 410))], "stages"), "stages", tmp_path / "w", no_rest)
    assert max(found) <= 3 * ROW_GROUP["stages"]
    assert sum(found) <= 2 * 420


def test_texts_as_keys(tmp_path: Path) -> None:
    """Of ids that lie in no order, every file has some of each part."""
    chance = random.Random(1)
    tables = [
        pa.Table.from_pylist(
            [
                {"id": f"ä{chance.randrange(1000)}", "kind": "message_id", "first_uid": n, "last_uid": n, "time": n}
                for n in range(60)
            ],
            IDS,
        )
        for _ in range(4)
    ]
    whole = merged(tmp_path, tables, "ids")
    assert as_rows(whole) == as_rows(pa.concat_tables(tables))
    assert whole["id"].to_pylist() == sorted(whole["id"].to_pylist())


def test_a_file_that_is_older_than_a_column(tmp_path: Path) -> None:
    """Is null there."""
    paths = files(tmp_path, [stages(range(50)), stages(range(50))], "stages")
    pq.write_table(pq.read_table(paths[0]).drop_columns(["target", "successors"]), paths[0], store_schema=False)
    merge(paths, "stages", tmp_path / "whole", no_rest)
    assert parquet.read(tmp_path / "whole", "stages", no_rest)["target"].null_count == 100


def test_a_damaged_file_is_told_as_what_it_is(tmp_path: Path) -> None:
    """Not in Arrow's own words."""
    paths = files(tmp_path, [stages(range(50)), stages(range(50))], "stages")
    paths[1].write_bytes(b"PAR1 no PAR1")
    with pytest.raises(ValueError, match="arquet"):
        merge(paths, "stages", tmp_path / "whole", no_rest)


def test_a_footer_that_would_end_the_process(tmp_path: Path) -> None:
    """Is found before keys are read by it: Arrow ends the process where a column's nesting does not fit."""
    path = tmp_path / "a.parquet"
    schema = pa.schema([pa.field("first_uid", pa.int64(), nullable=False)])
    pq.write_table(pa.table([pa.array([1], pa.int64())], schema), path, store_schema=False)
    with pytest.raises(ValueError, match="not as in any table"):
        merging._keys(path, "first_uid", no_rest)
