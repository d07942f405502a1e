"""Rows on their way to files, as tables: those of many batches together, and gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from services.mgmt.ledger.instances import Gap
from services.mgmt.ledger.schema import GAPS


def together(parts: Mapping[str, Sequence[pa.Table]], gaps: Sequence[tuple[int, Gap]]) -> dict[str, pa.Table]:
    """By table, those that have rows. A gap comes with the time at which it was noticed, in microseconds."""
    every = {**parts, "gaps": [*parts["gaps"], *_table(gaps)]}
    return {name: pa.concat_tables(tables) for name, tables in every.items() if tables}


def _table(gaps: Sequence[tuple[int, Gap]]) -> list[pa.Table]:
    rows = [dict(zip(GAPS.names, (time_us, *gap), strict=True)) for time_us, gap in gaps]
    return [pa.Table.from_pylist(rows, GAPS)] if rows else []
