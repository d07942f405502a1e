"""Tells sound Parquet files from those that are truncated, still being written, or of another schema."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from spark.ledger.files import Place
from spark.schema import LATER

_THREADS = 8


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that is not read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Sound:
    """A file that is read."""

    path: str
    rows: int
    size: int


def sort_out(folder: Place, paths: Sequence[str], expected: pa.Schema) -> tuple[list[Sound], list[Refused]]:
    """Which of the files can be read as `expected`; columns beyond it do not matter. Reads footers only."""
    with ThreadPoolExecutor(_THREADS) as pool:
        judged = list(pool.map(lambda path: _judge(folder, path, expected), paths))
    return [one for one in judged if isinstance(one, Sound)], [one for one in judged if isinstance(one, Refused)]


def _judge(folder: Place, path: str, expected: pa.Schema) -> Sound | Refused:
    try:
        with folder.system.open_input_file(path) as file:
            size = file.size()
            parquet = pq.ParquetFile(file)
            fault = _fault(parquet.schema_arrow, expected)
            rows = parquet.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        return Refused(path, f"unreadable: {str(error).splitlines()[0]}")
    return Refused(path, fault) if fault else Sound(path, rows, size)


def _fault(found: pa.Schema, expected: pa.Schema) -> str:
    for field in expected:
        if field.name not in found.names:
            if field.name in LATER:
                continue
            return f"wrong schema: no column {field.name}"
        kind = _plain(found.field(field.name).type)
        if not _same(kind, field.type):
            return f"wrong schema: {field.name} is {kind}, not {field.type}"
    return ""


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _same(found: pa.DataType, expected: pa.DataType) -> bool:
    """Names of list items and whether there may be nulls are the writer's own business."""
    if pa.types.is_list(expected):
        return pa.types.is_list(found) and _same(found.value_type, expected.value_type)
    if pa.types.is_struct(expected):
        return pa.types.is_struct(found) and all(
            found.get_field_index(field.name) >= 0 and _same(found.field(field.name).type, field.type)
            for field in expected
        )
    return bool(found.equals(expected))
