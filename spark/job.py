"""What an analysis is: a pure transform with documented outputs. Plug-ins give a `Job`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructField, StructType

from spark.errors import AnalysisError
from spark.terms import Unread


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a transform reads; lazy, so what it does not touch costs nothing."""

    stages: DataFrame
    gaps: DataFrame
    ids: DataFrame
    options: Mapping[str, str] = field(default_factory=dict)
    traces: DataFrame | None = None
    live: bool = False  # whether rows are being filed at the moment
    unread: Sequence[Unread] = ()  # files of stages and gaps

    @property
    def spans(self) -> DataFrame:
        """A row for each span (see `spark.traces.span`); for jobs that say that they read `spans`."""
        if self.traces is None:
            raise AnalysisError("the analysis does not say that it reads spans")
        return self.traces

    def number(self, name: str, default: float, least: float = 0) -> float:
        """An option that is a number from `least` on; raises AnalysisError if it is none."""
        said = self.options.get(name, default)
        try:
            number = float(said)
        except ValueError:
            number = nan
        if not least <= number < inf:
            raise AnalysisError(f"--option {name}={said}: that is no number from {least:g} on")
        return number


class Ranked(NamedTuple):
    """Rows with these values of a column first, in this order, and all others after them."""

    column: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a job gives: its columns (with comments, which are its documentation) and its order for people."""

    schema: StructType
    order: tuple[str | Ranked, ...] = ()  # columns; "-name" is descending
    console_rows: int = 1000  # the JSON for the console has so many rows at the most


def column(name: str, kind: DataType, comment: str) -> StructField:
    """A column of a table that a job gives; the comment is filed with the data."""
    return StructField(name, kind, True, {"comment": comment})


@dataclass(frozen=True, slots=True)
class Job:
    """An analysis. `transform` gives the tables named in `outputs`, each with exactly the columns said there."""

    name: str
    outputs: Mapping[str, Table]
    transform: Callable[[Inputs], dict[str, DataFrame]]
    reads: frozenset[str] = frozenset({"stages", "gaps"})  # of stages, gaps, ids, spans
    options: Mapping[str, str] = field(default_factory=dict)  # name: what it means
