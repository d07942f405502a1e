"""Whether headers of pages say the least and the greatest value that these have: DuckDB passes pages over by them.

Headers have no checksum: a bit that flips there hides rows, and no reader complains.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from services.mgmt.lookup.raw_pages import (
    CODECS,
    DATA,
    DICTIONARY,
    IN_DICTIONARY,
    PLAIN,
    STATISTICS,
    Page,
    chunk_of,
    decompressed,
    ends_of,
    pages_of,
)

_NUMBERS: Mapping[str, pa.DataType] = {"INT32": pa.int32(), "INT64": pa.int64()}
_TEXT = "BYTE_ARRAY"
_VALUES, _NULLS = 1, 3  # parquet.thrift: of DataPageHeader, and of Statistics

_End: TypeAlias = int | bytes


def require_ends(file: int, group: Any, name: str) -> None:  # noqa: ANN401 - pyarrow has no types
    """Raises ValueError where a header of a column's pages says other ends than the page, or the footer.

    As far as that can be told: nothing is said of columns in lists, nor of what is written in a way that is not known.
    """
    for column in map(group.column, range(group.num_columns)):
        if column.path_in_schema == name and column.physical_type in {*_NUMBERS, _TEXT}:
            _require(column, _pages(file, column))


def _pages(file: int, column: Any) -> list[Page]:  # noqa: ANN401 - as above
    """None of them where they cannot be taken apart: who decodes them says whether that is damage."""
    chunk = chunk_of(column)
    if column.compression not in CODECS:
        return []
    try:
        return list(pages_of(os.pread(file, chunk.size, chunk.begin)))
    except Exception:  # noqa: BLE001 - as a damaged header may raise anything
        return []


def _require(column: Any, pages: Sequence[Page]) -> None:  # noqa: ANN401 - as above
    ends = [_ends(page, column) for page in pages if page.kind == DATA]
    if ends and all(ends) and not _are_those_of_the_footer(column, [end for each in ends for end in each]):
        raise ValueError(f"headers of pages of {column.path_in_schema} say other ends than the footer")
    dictionary = b""
    for page in (each for each in pages if each.kind in {DATA, DICTIONARY}):
        content = decompressed(page, column.compression)
        if page.kind == DICTIONARY:
            dictionary = content
        elif not _fit(page, content, dictionary, column):
            raise ValueError(f"a header of a page of {column.path_in_schema} says other ends than the page has")


def _ends(page: Page, column: Any) -> list[_End]:  # noqa: ANN401 - as above
    """The least and the greatest; none where the header does not say."""
    return [_value(end, column) for end in ends_of(page)]


def _value(end: bytes, column: Any) -> _End:  # noqa: ANN401 - as above
    return int.from_bytes(end, "little", signed=True) if column.physical_type in _NUMBERS else end


def _are_those_of_the_footer(column: Any, ends: Sequence[Any]) -> bool:  # noqa: ANN401 - as above
    told = column.statistics
    if not told or not told.has_min_max:
        return True
    return [min(ends), max(ends)] == [each.encode() if isinstance(each, str) else each for each in _raw(told)]


def _raw(told: Any) -> tuple[Any, Any]:  # noqa: ANN401 - as above
    return told.min_raw, told.max_raw


def _fit(page: Page, content: bytes, dictionary: bytes, column: Any) -> bool:  # noqa: ANN401 - as above
    """Of a page that refers to a dictionary the ends are looked for there."""
    if page.kind == DATA and page.encoding in IN_DICTIONARY:
        return all(end in dictionary for end in ends_of(page))
    if page.kind != DATA or page.encoding != PLAIN or column.physical_type not in _NUMBERS:
        return True
    ends, values = _ends(page, column), _numbers(page, content, _NUMBERS[column.physical_type])
    return not ends or values is None or [each.as_py() for each in pc.min_max(values).values()] == ends


def _numbers(page: Page, content: bytes, kind: pa.DataType) -> pa.Array | None:
    """What a page has, after what says which are null; None where that is not as in a column which may have these."""
    count = page.about[_VALUES] - page.about[STATISTICS].get(_NULLS, 0) if STATISTICS in page.about else 0
    values = pa.py_buffer(content)[4 + int.from_bytes(content[:4], "little") :]
    return pa.Array.from_buffers(kind, count, [None, values]) if values.size * 8 == count * kind.bit_width else None
