"""Reads what analyses wrote for the console: the first rows of each table, and what was read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

from spark.errors import AnalysisError, NothingToRead
from spark.ledger.files import place
from spark.ledger.soundness import COPY

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """What one analysis gave."""

    name: str
    tables: Mapping[str, Sequence[Row]]
    summary: Mapping[str, Any]

    @property
    def unread(self) -> int:
        """Files of the record that could not be read: what they tell is missing here.

        Copies of others lack nothing, and no analysis reads ids.
        """
        inputs = self.summary["inputs"]
        refused = (one for name, read in inputs.items() for one in read["refused"] if name != "ids")
        return sum(not one["reason"].startswith(COPY) for one in refused)

    def table(self, name: str) -> Sequence[Row]:
        """The first rows of a table; none where there is no such table."""
        return self.tables.get(name, ())


def read_results(out: str) -> dict[str, Found]:
    """Every analysis whose results are under `out`, by name.

    Raises NothingToRead where there is none, AnalysisError where some cannot be read.
    """
    top = place(out)
    folders = [info for info in _inside(top.system, top.path) if info.type == fs.FileType.Directory]
    found = {info.base_name: one for info in folders if (one := _read(top.system, info))}
    if not found:
        raise NothingToRead(f"no analysis has left its results under {out}")
    return found


def _read(system: fs.FileSystem, folder: fs.FileInfo) -> Found | None:
    values = {
        info.base_name.removesuffix(".json"): _json(system, info.path)
        for info in _inside(system, folder.path)
        if info.type == fs.FileType.File and info.extension == "json"
    }
    summary = values.pop("summary", None)
    # One that says nothing of what was read is that of a stream: how far it is.
    is_of_analysis = isinstance(summary, dict) and "inputs" in summary
    return Found(folder.base_name, values, summary) if is_of_analysis else None


def _inside(system: fs.FileSystem, path: str) -> list[fs.FileInfo]:
    infos: list[fs.FileInfo] = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return sorted(infos, key=lambda info: info.path)


def _json(system: fs.FileSystem, path: str) -> Any:  # noqa: ANN401 - whatever is in the file
    with system.open_input_stream(path) as file:
        try:
            return json.loads(file.read())
        except ValueError:
            raise AnalysisError(f"{path} is damaged: run the analysis again, or remove its folder") from None
