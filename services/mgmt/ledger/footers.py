"""What footers of Parquet files say of their columns, without `FileMetaData.schema`.

A footer that was asked for it and that schema refer to each other. Only a full collection of garbage frees them, which
services have once in hours: until then each footer that was read would take a megabyte.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from services.mgmt.ledger.seal import require_seal

_RANGE = ("first", "last")


def opened(path: str | Path, **options: Any) -> pq.ParquetFile:  # noqa: ANN401 - as ParquetFile's
    """A file of the ledger, whose pages are checked as they are read. Raises OSError, ValueError, or another error of
    Arrow's, where it is damaged.

    Arrow ends the process at some damaged footers. Those of files without a seal are looked at for one of the ways: a
    column's nesting that does not fit what it has of that.
    """
    require_seal(path)
    file = pq.ParquetFile(path, page_checksum_verification=True, **options)
    try:
        require_shape(file.schema_arrow)
    except BaseException:
        file.close()
        raise
    return file


def require_shape(schema: pa.Schema) -> None:
    """Raises ValueError where columns are not nested as the ledger's: all may be null, and lists are of ranges."""
    for field in schema:
        if not field.nullable or (pa.types.is_nested(field.type) and not _is_of_ranges(field.type)):
            raise ValueError(f"column {field.name!r} is not as in any table")


def _is_of_ranges(kind: pa.DataType) -> bool:
    """Whether all of it may be null, or nothing: files of tests, and those of services."""
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    parts = [kind.value_field, *kind.value_type]
    return tuple(part.name for part in parts[1:]) == _RANGE and len({part.nullable for part in parts}) == 1


def column_paths(footer: Any) -> list[str]:  # noqa: ANN401 - pyarrow has no types
    """Of each column, in order: `queue`, or `uids.list.element.first`; none where there are no rows."""
    if not footer.num_row_groups:
        return []
    group = footer.row_group(0)
    return [group.column(number).path_in_schema for number in range(group.num_columns)]


def column_names(footer: Any) -> frozenset[str]:  # noqa: ANN401 - as above
    """The columns of the table; none where there are no rows."""
    return frozenset(path.partition(".")[0] for path in column_paths(footer))
