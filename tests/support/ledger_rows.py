"""Ledgers of a few rows, said by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark.schema import GAPS, IDS, STAGES, arrow_schema

START = datetime(2026, 1, 31, 23, 10, tzinfo=UTC)
_SCHEMAS = {"stages": STAGES, "ids": IDS, "gaps": GAPS}
_OF_GATEWAYS = {"received", "routed", "returned", "confirmed", "refused", "sent", "rolled_back"}


def stage(name: str, first: int, last: int | None = None, *, at: float = 0.0, **values: Any) -> dict[str, Any]:
    """A row of stages for the uids first to last, `at` seconds after START; in queue q unless `values` has another."""
    last = first if last is None else last
    service = "gateway" if name in _OF_GATEWAYS else "queue"
    return {
        **{field.name: 0 if str(field.type).startswith("int") else "" for field in arrow_schema(STAGES)},
        "time": START + timedelta(seconds=at),
        "stage": name,
        "service": service,
        "instance": f"{service}-0",
        "virtual_host": "/",
        "queue": "q" if service == "queue" or name == "routed" else "",
        "partition": 3,
        "epoch": 1 if service == "queue" else 0,
        "outcome": "accepted" if name == "settled" else "",
        "count": last - first + 1,
        "first_uid": first,
        "last_uid": last,
        "uids": [{"first": first, "last": last}],
        "successors": [],
        **values,
    }


def file_rows(ledger: Path, table: str, rows: list[dict[str, Any]], name: str = "rows") -> Path:
    """Writes rows to the file of the hour of the first, and gives its path."""
    time = rows[0]["time"] if rows else START
    path = ledger / table / f"date={time:%Y-%m-%d}" / f"hour={time:%H}" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, arrow_schema(_SCHEMAS[table])), path)
    return path


def damage_column(path: Path, name: str) -> None:
    """Has a file's pages of a column be no pages; its footer is whole."""
    whole = bytearray(path.read_bytes())
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    [chunk] = [chunk for chunk in chunks if chunk.path_in_schema == name]
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    whole[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(whole)
