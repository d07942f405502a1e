"""Tables from and to single files, column by column, with rests between."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.mgmt.ledger.arrow_errors import as_known_errors
from services.mgmt.ledger.footers import column_names, opened
from services.mgmt.ledger.pace import Rest
from services.mgmt.ledger.schema import FEW_VALUES, NUMBERS, REPEATED, ROW_GROUP, SORTED_BY, STEPS, TABLES
from services.mgmt.ledger.seal import seal

_HOUR_US = 3_600_000_000
_PAGE = 128 << 10  # bytes that are compressed at once


class _PacedFile(io.BufferedWriter):
    """Arrow writes a page, or a column of a row group, at a time: between two of them it rests."""

    def __init__(self, path: Path, rest: Rest) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self._rest = rest

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # all that Arrow gives
        self._rest()
        return super().write(data)


def by_hour(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each hour since the Unix epoch."""
    hours = pc.divide(table["time"].cast(pa.int64()), _HOUR_US)
    found = pc.unique(hours).to_pylist()
    for hour in found:
        yield hour, table if len(found) == 1 else table.filter(pc.equal(hours, hour))


@contextlib.contextmanager
def writing(path: Path, table: str, rest: Rest) -> Iterator[Callable[[pa.Table], None]]:
    """A file of `table`, sealed, with all text as text. Gives what adds rows: in order, whole row groups at a time."""
    with (
        _PacedFile(path, rest) as file,
        pq.ParquetWriter(
            file,
            TABLES[table],
            compression=_compression(table),
            column_encoding=dict.fromkeys((*NUMBERS[table], *STEPS[table]), "DELTA_BINARY_PACKED") or None,
            store_schema=False,
            # Where hardly a value comes again, dictionaries take more time and more space than they save.
            use_dictionary=[*repeated(table), *FEW_VALUES[table]],
            data_page_size=_PAGE,
            # A bit that flips on the disk would be read as another queue or stage, and nothing would tell.
            write_page_checksum=True,
        ) as writer,
    ):
        yield partial(writer.write_table, row_group_size=ROW_GROUP[table])
    seal(path)


def _compression(table: str) -> str | dict[str, str]:
    """Of each column, where some are not compressed; a column of lists would have to be named by its parts."""
    numbers = NUMBERS[table]
    return {name: "none" if name in numbers else "zstd" for name in TABLES[table].names} if numbers else "zstd"


@as_known_errors()
def write(rows: pa.Table, table: str, path: Path, rest: Rest) -> None:
    """Writes rows of `table`, in its order. Raises OSError or ValueError."""
    with writing(path, table, rest) as add:
        add(in_order(rows, table, rest))


@as_known_errors()
def read(path: Path, table: str, rest: Rest, groups: Sequence[int] | None = None) -> pa.Table:
    """The rows of a file of `table`, or of these row groups of it; null in columns that it is older than. Raises
    OSError or ValueError.
    """
    columns = []
    with opened(path) as file:
        footer = file.metadata
    groups = range(footer.num_row_groups) if groups is None else groups
    count = sum(footer.row_group(group).num_rows for group in groups)
    there = column_names(footer)
    texts = sorted(there.intersection(repeated(table)))
    with pq.ParquetFile(path, metadata=footer, read_dictionary=texts, page_checksum_verification=True) as file:
        for field in TABLES[table]:
            columns.append(_column(file, field, groups) if field.name in there else _nulls(count, field))
            rest()
    return pa.table(columns, schema=TABLES[table])


@as_known_errors()
def number_of_rows(path: Path) -> int:
    """Of a file. Raises OSError or ValueError."""
    with opened(path) as file:
        count: int = file.metadata.num_rows
    return count


def _column(file: pq.ParquetFile, field: pa.Field, groups: Sequence[int]) -> pa.ChunkedArray:
    return file.read_row_groups(groups, [field.name], use_threads=False)[field.name].cast(field.type)


def _nulls(count: int, field: pa.Field) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(count, field.type)])


def in_order(rows: pa.Table, table: str, rest: Rest) -> pa.Table:
    """Rows of `table` in its order, in chunks that are its row groups."""
    order = pc.sort_indices(rows[SORTED_BY[table]])
    rest()
    size = ROW_GROUP[table]
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    return pa.table([_taken(column, parts, rest) for column in rows.columns], schema=rows.schema)


def _taken(column: pa.ChunkedArray, parts: list[pa.Array], rest: Rest) -> pa.ChunkedArray:
    # Of one chunk: otherwise each part would have all of them put together.
    whole = column.combine_chunks()
    rest()
    return pa.chunked_array(_each(whole, parts, rest), column.type)


def _each(whole: pa.Array, parts: list[pa.Array], rest: Rest) -> Iterator[pa.Array]:
    for part in parts:
        yield whole.take(part)
        rest()


def repeated(table: str) -> list[str]:
    """Columns of `table` whose text is kept in memory by its few values."""
    return [field.name for field in TABLES[table] if field.type == REPEATED]
