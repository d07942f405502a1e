"""What is on file, read as any reader of Parquet does: by the pattern of the folders."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

# Of an hour there are millions of rows: only those that are asked for become objects.
_WAYS = """
    WITH named AS (SELECT DISTINCT id, first_uid AS uid FROM read_parquet($ids) WHERE list_contains($names, id)),
         stage AS (SELECT time, unnest(uids) AS span,
                          concat_ws(' ', stage, nullif(outcome, ''), nullif(reason, '')) AS step
                   FROM read_parquet($stages))
    SELECT id, step FROM stage JOIN named ON uid BETWEEN span.first AND span.last ORDER BY time
"""


class FiledLedger:
    """The tables of a stack's data folder."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "ledger"

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table; a file that is replaced while this reads is read again."""
        while True:
            try:
                return [row for path in self._files(table) for row in pq.ParquetFile(path).read().to_pylist()]
            except FileNotFoundError:
                continue

    def ways(self, message_ids: list[str]) -> dict[str, list[str]]:
        """The stages of each of these messages, by time; none of those that are not on file."""
        ways: dict[str, list[str]] = defaultdict(list)
        while (ids := self._files("ids")) and (stages := self._files("stages")):
            asked = {"names": message_ids, "ids": ids, "stages": stages}
            try:
                for message_id, step in duckdb.execute(_WAYS, asked).fetchall():
                    ways[message_id].append(step)
                break
            except duckdb.IOException:
                continue
        return ways

    def _files(self, table: str) -> list[str]:
        return sorted(map(str, self._folder.glob(f"{table}/date=*/hour=*/[!._]*.parquet")))

    def doubled(self) -> list[tuple[str, int, int]]:
        """Rows that are there more than once."""
        counts = Counter((row["instance"], row["row"], row["first_uid"]) for row in self.rows("stages"))
        return [row for row, count in counts.items() if count > 1]
