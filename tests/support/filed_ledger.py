"""What is on file, read as anybody reads it: by the pattern of the folders."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


class FiledLedger:
    """The tables of a stack's data folder."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "ledger"

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table; a file that is replaced while this reads is read again."""
        while True:
            try:
                files = sorted(self._folder.glob(f"{table}/date=*/hour=*/[!._]*.parquet"))
                return [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]
            except FileNotFoundError:
                continue

    def uids(self, message_ids: list[str]) -> dict[str, int]:
        """The uid of each message, by its id."""
        return {row["id"]: row["first_uid"] for row in self.rows("ids") if row["id"] in set(message_ids)}

    def ways(self) -> dict[int, list[str]]:
        """The stages of every message, by time."""
        ways: dict[int, list[str]] = defaultdict(list)
        for row in sorted(self.rows("stages"), key=lambda row: row["time"]):
            step = " ".join(filter(None, (row["stage"], row["outcome"], row["reason"])))
            for one in row["uids"]:
                for uid in range(one["first"], one["last"] + 1):
                    ways[uid].append(step)
        return ways

    def doubled(self) -> list[tuple[str, int, int]]:
        """Rows that are there more than once."""
        counts = Counter((row["instance"], row["row"], row["first_uid"]) for row in self.rows("stages"))
        return [row for row, count in counts.items() if count > 1]
