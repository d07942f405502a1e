"""Rows on their way to files: those that came since the last filing, and those that are being filed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from services.mgmt.ledger.instances import Gap
from services.mgmt.ledger.tables import NAMES

if TYPE_CHECKING:
    import pyarrow as pa

    from services.mgmt.ledger.decode import Rows

Tables: TypeAlias = "Mapping[str, pa.Table]"


_ROW_BYTES = 40  # of bodies, that count as a row: some eight megabytes of them are filed before their time


class Drawer:
    """Filled by batches, emptied by filings."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pa.Table]] = {name: [] for name in NAMES}
        self._gaps: list[tuple[int, Gap]] = []
        self._taken: Tables = {}
        self.rows = 0

    def put(self, rows: Rows) -> None:
        """The rows of a batch."""
        self._parts["stages"].append(rows.stages)
        for name in ("ids", "connections", "payloads"):
            if len(some := getattr(rows, name)):
                self._parts[name].append(some)
        # What is large is filed as soon as many rows are: all of it is in memory until then.
        self.rows += rows.stages.num_rows + rows.payloads.nbytes // _ROW_BYTES

    def put_gap(self, gap: Gap, time_us: int) -> None:
        """A gap that was noticed at `time_us`."""
        self._gaps.append((time_us, gap))
        self.rows += 1

    def take(self) -> Tables:
        """Everything; it is offered further on until `done`."""
        self._taken = self._together(self._parts)
        self._parts = {name: [] for name in NAMES}
        self._gaps = []
        self.rows = 0
        return self._taken

    def done(self) -> None:
        """What was taken is on file."""
        self._taken = {}

    def tables(self) -> Tables:
        """What is not on file, by table."""
        return self._together({name: [*parts, *_one(self._taken, name)] for name, parts in self._parts.items()})

    def _together(self, parts: Mapping[str, list[pa.Table]]) -> Tables:
        if not self._gaps and not any(parts.values()):
            return {}
        # Not before there is a row: Arrow takes memory and time.
        from services.mgmt.ledger.loose import together  # noqa: PLC0415

        return together(parts, self._gaps)


def _one(tables: Tables, name: str) -> list[pa.Table]:
    return [tables[name]] if name in tables else []
