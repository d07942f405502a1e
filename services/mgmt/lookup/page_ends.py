"""Whether headers of pages, and footers, say the least and the greatest value that there are: by headers DuckDB passes
pages over, and by footers row groups and files are passed over.

Neither has a checksum: a bit that flips there hides rows, and no reader complains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from services.mgmt.lookup.raw_pages import DATA, DICTIONARY, STATISTICS, Page, chunk_of, ends_of, headers_of

_NUMBERS = frozenset({"INT32", "INT64"})
_TEXT = "BYTE_ARRAY"
_KINDS: Mapping[str, pa.DataType] = {"INT32": pa.int64(), "INT64": pa.int64(), _TEXT: pa.binary()}
_VALUES, _NULLS = 1, 3  # parquet.thrift: of DataPageHeader, and of Statistics

_End: TypeAlias = int | bytes


def require_told(path: str | Path, footer: Any, names: Collection[str]) -> None:  # noqa: ANN401 - pyarrow has no types
    """Raises ValueError where a footer says other ends of these columns than the headers of their pages: files are
    chosen by it. Only headers are read.
    """
    with Path(path).open("rb") as raw:
        for number in range(footer.num_row_groups):
            _require_footer(raw.fileno(), footer.row_group(number), names)


def require_footer(raw: int, group: Any, name: str) -> None:  # noqa: ANN401 - as above
    """The same of one column of a row group."""
    _require_footer(raw, group, (name,))


def _require_footer(raw: int, group: Any, names: Collection[str]) -> None:  # noqa: ANN401 - as above
    with _as_damage(", ".join(names)):
        for column in _columns(group, names):
            _require_told(column, _pages(raw, column))


def require_ends(raw: int, file: pq.ParquetFile, number: int, name: str) -> None:
    """Raises ValueError where a header of a column's pages in a row group says other ends than the page, or the footer.

    As far as that can be told: nothing is said of columns in lists, nor of pages that are of another version. How
    values are written does not matter: Arrow decodes them.
    """
    for column in _columns(file.metadata.row_group(number), (name,)):
        with _as_damage(name):
            pages = _pages(raw, column)
            _require_told(column, pages)
            if any(map(ends_of, pages)):
                _require_pages(column, pages, file.read_row_group(number, columns=[name], use_threads=False)[name])


@contextmanager
def _as_damage(name: str) -> Iterator[None]:
    """Whatever a damaged header or footer raises."""
    try:
        yield
    except (ValueError, MemoryError):
        raise
    except Exception as failure:
        raise ValueError(f"what is said of the ends of {name} cannot be read: {failure!r}") from failure


def _columns(group: Any, names: Collection[str]) -> list[Any]:  # noqa: ANN401 - as above
    columns = map(group.column, range(group.num_columns))
    return [column for column in columns if column.path_in_schema in names and column.physical_type in _KINDS]


def _pages(raw: int, column: Any) -> list[Page]:  # noqa: ANN401 - as above
    """Those with data; none where they cannot be taken apart: who decodes them says whether that is damage."""
    try:
        pages = list(headers_of(raw, chunk_of(column)))
    except Exception:  # noqa: BLE001 - as a damaged header may raise anything
        return []
    known = all(page.kind in {DATA, DICTIONARY} for page in pages)
    return [page for page in pages if page.kind == DATA] if known else []


def _require_told(column: Any, pages: Sequence[Page]) -> None:  # noqa: ANN401 - as above
    """Where each page with values says its ends, and the footer says some, these are the outermost."""
    ends = [_ends(page, column) for page in pages if not _is_of_nulls(page)]
    told = column.statistics
    if not ends or not all(ends) or not told or not told.has_min_max:
        return
    each = [end for some in ends for end in some]
    if [min(each), max(each)] != [_raw(told.min_raw), _raw(told.max_raw)]:
        raise ValueError(f"headers of pages of {column.path_in_schema} say other ends than the footer")


def _is_of_nulls(page: Page) -> bool:
    """Such a page has no ends."""
    statistics = page.about.get(STATISTICS) or {}
    return not ends_of(page) and bool(statistics.get(_NULLS) == page.about[_VALUES])


def _ends(page: Page, column: Any) -> list[Any]:  # noqa: ANN401 - as above
    """The least and the greatest; none where the header does not say."""
    return [_value(end, column) for end in ends_of(page)]


def _value(end: bytes, column: Any) -> _End:  # noqa: ANN401 - as above
    return int.from_bytes(end, "little", signed=True) if column.physical_type in _NUMBERS else end


def _raw(end: Any) -> _End:  # noqa: ANN401 - as above
    found: _End = end.encode() if isinstance(end, str) else end
    return found


def _require_pages(column: Any, pages: Sequence[Page], values: pa.ChunkedArray) -> None:  # noqa: ANN401 - as above
    values = _plain(values, column)
    begin = 0
    for page in pages:
        count, ends = page.about[_VALUES], _ends(page, column)
        if ends and ends != [end.as_py() for end in pc.min_max(values.slice(begin, count)).values()]:
            raise ValueError(f"a header of a page of {column.path_in_schema} says other ends than the page has")
        begin += count
    if begin != len(values):
        raise ValueError(f"headers of pages of {column.path_in_schema} say another number of values than they have")


def _plain(values: pa.ChunkedArray, column: Any) -> pa.ChunkedArray:  # noqa: ANN401 - as above
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values.cast(_KINDS[column.physical_type])
