"""Tables of which the console is shown the first rows only: the report counts and draws all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from spark.errors import AnalysisError
from spark.job import Ranked
from spark.output import count_rows, first_rows, plain
from spark.registry import job

_T = TypeVar("_T")

MOST = 50_000  # rows that are in memory at a time


class Whole:
    """One of them, as Parquet in `path`; `table` is its name, of an analysis."""

    def __init__(self, path: str, analysis: str, table: str) -> None:
        """Raises AnalysisError where it cannot be read, as all methods do."""
        self._path = path
        self._order = _order(analysis, table)
        self._rows: list[dict[str, Any]] | None = None
        self.count = self._told(lambda: count_rows(path))
        """How many rows there are."""

    def rows(self) -> list[dict[str, Any]]:
        """The first MOST of them, as the console has them."""
        if self._rows is None:
            self._rows = self._first()
        return self._rows

    def of(self, **values: object) -> list[dict[str, Any]]:
        """Those that have these values; the first MOST."""
        return self._first(**values)

    @property
    def is_cut(self) -> bool:
        """Whether `rows` were asked for, and are not all."""
        return self._rows is not None and self.count > len(self._rows)

    def _first(self, **values: object) -> list[dict[str, Any]]:
        rows = self._told(lambda: first_rows(self._path, self._order, MOST, **values))
        as_told: list[dict[str, Any]] = json.loads(json.dumps(rows, default=plain))
        return as_told

    def _told(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except (pa.ArrowException, duckdb.Error, OSError) as error:
            why = str(error).partition("\n")[0]
            raise AnalysisError(f"{self._path} cannot be read: run the analysis again ({why})") from None


def _order(analysis: str, table: str) -> tuple[str | Ranked, ...]:
    try:
        outputs = job(analysis).outputs
    except (AnalysisError, ImportError):  # of a plug-in that is not installed any more
        return ()
    return outputs[table].order if table in outputs else ()
