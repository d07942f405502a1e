"""Whether what is to be read of a file is as it was written: DuckDB does not look at the checksums of pages.

Files never change, so each page is looked at once, before it is read for the first time. Files of older releases have
no checksums: of them only damage is found that cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from services.mgmt.ledger.footers import column_paths, opened
from services.mgmt.lookup.page_ends import require_ends, require_footer
from services.mgmt.lookup.raw_pages import is_as_written

_REMEMBERED = 20_000  # files
FAULTS = (OSError, ValueError, TypeError, pa.ArrowException)
"""What damaged files come to."""

Span = tuple[int, int]
_Key = tuple[str, frozenset[str], frozenset[str], tuple[object, ...]]
_Check: TypeAlias = "Callable[[int, pq.ParquetFile, int, str], None]"

Within = Mapping[str, tuple[Any, Any]]
"""Columns, and between which values all rows have theirs that are looked for."""

EVERYWHERE: Within = MappingProxyType({})


class Wanted(NamedTuple):
    """What is read of a file: of the row groups that can have it, these columns."""

    columns: frozenset[str]
    uids: Sequence[Span] | None = None
    within: Within = EVERYWHERE
    compared: frozenset[str] = frozenset()
    """Those of the columns by whose values rows are chosen: by them DuckDB passes pages over."""
    known: frozenset[str] = frozenset()
    """All columns of the table, where that is to be looked at."""
    choosing: frozenset[str] = frozenset()
    """Those by whose ends in footers files and row groups are chosen, besides those of `within`."""


class Pages:
    """For several threads."""

    def __init__(self) -> None:
        self._sound: dict[str, tuple[object, set[tuple[int, str, _Check]]]] = {}
        self._done: dict[_Key, object] = {}  # what was looked at in all of a file, whose footer need not be read again

    def verify(self, path: str, version: object, wanted: Wanted, go_on: Callable[[], bool]) -> None:
        """Raises one of FAULTS for damage; ends early when `go_on` says no. `version` tells a file from another one
        of its name.
        """
        key = path, wanted.columns, wanted.compared, (*wanted.within.items(), *sorted(wanted.choosing))
        if wanted.uids is None and version is not None and self._done.get(key) == version:
            return
        self._verify(path, version, wanted, go_on)
        if len(self._done) >= _REMEMBERED:
            self._done.clear()
        if wanted.uids is None and go_on():
            self._done[key] = version

    def _verify(self, path: str, version: object, wanted: Wanted, go_on: Callable[[], bool]) -> None:
        known, sound = self._sound.get(path, (None, set()))
        sound = sound if known == version else set()
        with (
            Path(path).open("rb") as raw,
            opened(path, pre_buffer=False) as file,
        ):
            for group, name, check in _checks(file, wanted):
                if (group, name, check) in sound:
                    continue
                if not go_on():
                    return
                check(raw.fileno(), file, group, name)
                sound.add((group, name, check))
        if len(self._sound) >= _REMEMBERED:
            self._sound.clear()
        self._sound[path] = version, sound


def _checks(file: pq.ParquetFile, wanted: Wanted) -> Iterator[tuple[int, str, _Check]]:
    there = frozenset(file.schema_arrow.names)
    _require_names(there, wanted)
    # Of all row groups: those that seem to have nothing of it are not read.
    choosing = sorted((wanted.choosing | wanted.within.keys()) & there)
    yield from ((group, name, _require_footer) for group in range(file.metadata.num_row_groups) for name in choosing)
    for group in _groups(file.metadata, wanted):
        yield from ((group, name, _require_sound) for name in sorted(wanted.columns & there))
        yield from ((group, name, _require_ends) for name in sorted(wanted.compared & there))


def _require_names(there: frozenset[str], wanted: Wanted) -> None:
    """A file of an older release lacks columns, one of a later has others. In none has one another name."""
    lacking, unknown = (wanted.columns & wanted.known) - there, there - wanted.known
    if there and wanted.known and lacking and unknown:
        raise ValueError(f"it has a column {min(unknown)!r} and none called {min(lacking)!r}")


def _require_sound(raw: int, file: pq.ParquetFile, group: int, name: str) -> None:
    if not _is_as_written(raw, file.metadata.row_group(group), name):
        _look_at(file, group, name)


def _require_ends(raw: int, file: pq.ParquetFile, group: int, name: str) -> None:
    require_ends(raw, file, group, name)


def _require_footer(raw: int, file: pq.ParquetFile, group: int, name: str) -> None:
    require_footer(raw, file.metadata.row_group(group), name)


def _is_as_written(raw: int, group: Any, name: str) -> bool:  # noqa: ANN401 - pyarrow has no types
    """By the checksums alone, in a tenth of the time that it takes to decode what they are of."""
    columns = (group.column(number) for number in range(group.num_columns))
    return all(is_as_written(raw, each) for each in columns if each.path_in_schema.partition(".")[0] == name)


def _look_at(file: pq.ParquetFile, group: int, name: str) -> None:
    """One column at a time: many would take ten times the memory."""
    found = file.read_row_group(group, columns=[name], use_threads=False)
    if len(found) != file.metadata.row_group(group).num_rows:
        raise ValueError(f"column {name} has not a value for each row")


def _groups(footer: Any, wanted: Wanted) -> Iterator[int]:  # noqa: ANN401 - pyarrow has no types
    """The row groups that can have some of it, as far as the footer tells."""
    places = {path: number for number, path in enumerate(column_paths(footer))}
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)

        def ends(name: str, group: Any = group) -> tuple[Any, Any] | None:  # noqa: ANN401 - as above
            found = group.column(places[name]).statistics if name in places else None
            return (found.min, found.max) if found and found.has_min_max else None

        if _may_have(wanted, ends):
            yield number


def _may_have(wanted: Wanted, ends: Callable[[str], tuple[Any, Any] | None]) -> bool:
    first, last = ends("first_uid"), ends("last_uid")
    if wanted.uids is not None and first and last:
        return any(first[0] <= end and begin <= last[1] for begin, end in wanted.uids)
    known = ((span, ends(name)) for name, span in wanted.within.items())
    return all(found[0] <= greatest and least <= found[1] for (least, greatest), found in known if found)
