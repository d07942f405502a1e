"""What footers of Parquet files say of their columns, without `FileMetaData.schema`.

A footer that was asked for it and that schema refer to each other. Only a full collection of garbage frees them, which
services have once in hours: until then each footer that was read would take a megabyte.
"""

from __future__ import annotations

from typing import Any


def column_paths(footer: Any) -> list[str]:  # noqa: ANN401 - pyarrow has no types
    """Of each column, in order: `queue`, or `uids.list.element.first`; none where there are no rows."""
    if not footer.num_row_groups:
        return []
    group = footer.row_group(0)
    return [group.column(number).path_in_schema for number in range(group.num_columns)]


def column_names(footer: Any) -> frozenset[str]:  # noqa: ANN401 - as above
    """The columns of the table; none where there are no rows."""
    return frozenset(path.partition(".")[0] for path in column_paths(footer))
