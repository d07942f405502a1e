"""Reads what analyses wrote for the console: the first rows of each table, and what was read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyarrow import fs

from spark.errors import AnalysisError, NothingToRead
from spark.ledger.files import place
from spark.ledger.soundness import COPY
from spark.output import is_written
from spark.report.whole import Whole

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """What one analysis gave."""

    name: str
    tables: Mapping[str, Sequence[Row]]  # the first rows of each, which the page shows
    summary: Mapping[str, Any]
    whole: Mapping[str, Whole] = field(default_factory=dict)  # of which there are more
    written: fs.FileInfo | None = None  # its summary.json, as it was before anything was read

    @property
    def unread(self) -> int:
        """Files of the record that could not be read: what they tell is missing here.

        Copies of others lack nothing, and no analysis reads ids.
        """
        inputs = self.summary["inputs"]
        refused = (one for name, read in inputs.items() for one in read["refused"] if name != "ids")
        return sum(not one["reason"].startswith(COPY) for one in refused)

    def table(self, name: str) -> Sequence[Row]:
        """All rows of a table, as far as memory goes (see `cut`); none where there is no such table."""
        return self.whole[name].rows() if name in self.whole else self.tables.get(name, ())

    def of(self, name: str, **values: object) -> Sequence[Row]:
        """The rows of a table that have these values."""
        if name in self.whole:
            return self.whole[name].of(**values)
        return [row for row in self.table(name) if all(row[column] == value for column, value in values.items())]

    @property
    def cut(self) -> Mapping[str, int]:
        """The tables of which `table` gave a part only, with the rows that they have."""
        return {name: whole.count for name, whole in self.whole.items() if whole.is_cut}


def read_results(out: str) -> dict[str, Found]:
    """Every analysis whose results are under `out`, by name: what a run is writing now is none.

    Raises NothingToRead where there is none, AnalysisError where some cannot be read.
    """
    top = place(out)
    folders = [info for info in _inside(top.system, top.path) if info.type == fs.FileType.Directory]
    found = {info.base_name: one for info in folders if (one := _read(out, top.system, info))}
    if not found:
        raise NothingToRead(f"no analysis has left its results under {out}")
    return found


@contextmanager
def unreplaced(out: str, results: Collection[Found]) -> Iterator[None]:
    """Raises AnalysisError where a run has begun to write one of them anew before the block ends, or fails: a run
    removes the summary before all else, and writes it last.
    """
    system = place(out).system
    try:
        yield
    except Exception:  # what is half written looks damaged, or of two runs, which do not fit together
        _require_unreplaced(system, results)
        raise
    _require_unreplaced(system, results)


def _require_unreplaced(system: fs.FileSystem, results: Collection[Found]) -> None:
    for written in (one.written for one in results if one.written):
        if _version(system.get_file_info(written.path)) != _version(written):
            raise _replaced(written.path)


def _version(info: fs.FileInfo) -> tuple[object, ...]:
    return info.type, info.mtime_ns, info.size


def _replaced(path: str) -> AnalysisError:
    return AnalysisError(f"{path.rpartition('/')[0]} was written anew while it was read: ask again")


def _read(out: str, system: fs.FileSystem, folder: fs.FileInfo) -> Found | None:
    written = system.get_file_info(f"{folder.path}/summary.json")
    summary = _json(system, written.path) if written.type == fs.FileType.File else None
    # One that says nothing of what was read is that of a stream: how far it is.
    if not isinstance(summary, dict) or "inputs" not in summary:
        return None
    found = Found(folder.base_name, {}, summary, written=written)
    with unreplaced(out, [found]):
        tables = _tables(system, folder)
        return replace(found, tables=tables, whole=_whole(out, folder.base_name, tables))


def _tables(system: fs.FileSystem, folder: fs.FileInfo) -> dict[str, Any]:
    return {
        info.base_name.removesuffix(".json"): _json(system, info.path)
        for info in _inside(system, folder.path)
        if info.type == fs.FileType.File and info.extension == "json" and info.base_name != "summary.json"
    }


def _whole(out: str, analysis: str, tables: Mapping[str, Sequence[Row]]) -> dict[str, Whole]:
    """The tables that have more rows than those which were written for the console."""
    paths = {name: f"{out.rstrip('/')}/{analysis}/{name}.parquet" for name in tables}
    found = {name: Whole(path, analysis, name) for name, path in paths.items() if is_written(path)}
    return {name: whole for name, whole in found.items() if whole.count > len(tables[name])}


def _inside(system: fs.FileSystem, path: str) -> list[fs.FileInfo]:
    infos: list[fs.FileInfo] = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return sorted(infos, key=lambda info: info.path)


def _json(system: fs.FileSystem, path: str) -> Any:  # noqa: ANN401 - whatever is in the file
    try:
        with system.open_input_stream(path) as file:
            return json.loads(file.read())
    except FileNotFoundError:
        raise _replaced(path) from None
    except ValueError:
        raise AnalysisError(f"{path} is damaged: run the analysis again, or remove its folder") from None
