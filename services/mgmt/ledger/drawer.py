"""Rows on their way to files: those that came since the last filing, and those that are being filed."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from services.mgmt.ledger.decode import Rows
from services.mgmt.ledger.instances import Gap
from services.mgmt.ledger.schema import GAPS, TABLES

Tables = Mapping[str, pa.Table]


class Drawer:
    """Filled by batches, emptied by filings."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
        self._taken: Tables = {}
        self.rows = 0

    def put(self, rows: Rows) -> None:
        """The rows of a batch."""
        self._parts["stages"].append(rows.stages)
        if rows.ids.num_rows:
            self._parts["ids"].append(rows.ids)
        self.rows += rows.stages.num_rows

    def put_gap(self, gap: Gap, time_us: int) -> None:
        """A gap that was noticed at `time_us`."""
        columns = [[time_us], *([value] for value in gap)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, GAPS, strict=True)]
        self._parts["gaps"].append(pa.table(arrays, schema=GAPS))
        self.rows += 1

    def take(self) -> Tables:
        """Everything; it is offered further on until `done`."""
        self._taken = {name: pa.concat_tables(parts) for name, parts in self._parts.items() if parts}
        self._parts = {name: [] for name in TABLES}
        self.rows = 0
        return self._taken

    def done(self) -> None:
        """What was taken is on file."""
        self._taken = {}

    def tables(self) -> Tables:
        """What is not on file, by table."""
        parts = {name: list(parts) for name, parts in self._parts.items()}
        for name, table in self._taken.items():
            parts[name].append(table)
        return {name: pa.concat_tables(each) for name, each in parts.items() if each}
