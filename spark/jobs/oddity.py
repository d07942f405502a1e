"""Which windows of an edge are too far from the median of those before: docs/anomalies.md."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import functions as F

_SIGMA = 1.4826  # of a normal distribution, times the median absolute deviation
_TAIL, _TAIL_SIGMA = 0.9, 1.2816  # a quantile, and where a normal distribution has it
_STEADY = 0.05  # what is as steady as a machine still varies by this much of its median
_LIKE = 0.5  # of the way from the median: what came as far is of the same kind
_HABIT = 2  # times that a kind came before, after which it is no news
_MEMORY = 10  # times the history


class Bounds(NamedTuple):
    """How many windows make a baseline, without how many nothing is judged, and how many spreads are too far."""

    history: int
    least: int
    threshold: float


def with_oddity(values: DataFrame, of_edge: WindowSpec, bounds: Bounds) -> DataFrame:
    """Adds `known` (enough came before), `median`, `spread`, `score` and `odd` to rows with `value`, and `least`: the
    smallest difference that is worth a word.
    """
    earlier = F.collect_list("value").over(of_edge.rowsBetween(-_MEMORY * bounds.history, -1))
    begin = F.greatest(F.size("earlier") - bounds.history + 1, F.lit(1))
    known = F.size("earlier") >= bounds.least
    floor = F.greatest(F.col("median") * _STEADY, F.sqrt("median"), F.col("least") / bounds.threshold)
    # As a factor: what counts is how many times as much; `least` keeps small numbers from being many times none.
    factor_floor = F.log1p(F.greatest(F.lit(_STEADY), 1 / F.sqrt(F.col("median") + F.col("least"))))
    return (
        values.withColumn("earlier", earlier)
        .withColumn("known", known)
        .withColumn("before", F.when(known, F.sort_array(F.slice("earlier", begin, bounds.history))))
        .withColumn("median", _quantile(F.col("before"), 0.5))
        .withColumn("spread", F.when(known, F.greatest(_spread(F.col("before"), F.col("value")), floor)))
        .withColumn("score", F.col("value") - F.col("median"))
        .withColumn("score", F.col("score") / F.col("spread"))
        .withColumn(
            "score", F.when(F.col("score") > 0, F.least("score", _factor(factor_floor))).otherwise(F.col("score"))
        )
        .withColumn("odd", F.coalesce((F.abs("score") >= bounds.threshold) & ~_is_habit(), F.lit(False)))
        .drop("earlier", "before")
    )


def _spread(ordered: Column, value: Column) -> Column:
    """To the side where the value is: bursts make the upper one wide, and leave the median absolute deviation at 0."""
    median = _quantile(ordered, 0.5)
    deviations = F.sort_array(F.transform(ordered, lambda one: F.abs(one - median)))
    above, below = _quantile(ordered, _TAIL) - median, median - _quantile(ordered, 1 - _TAIL)
    return F.greatest(_SIGMA * _quantile(deviations, 0.5), F.when(value > median, above).otherwise(below) / _TAIL_SIGMA)


def _factor(floor: Column) -> Column:
    """How many spreads away a value is on a scale of factors."""

    def scaled(value: Column) -> Column:
        return F.log(value + F.col("least"))

    away = scaled(F.col("value")) - scaled(F.col("median"))
    return away / F.greatest(_spread(F.transform("before", scaled), scaled(F.col("value"))), floor)


def _is_habit() -> Column:
    """Whether what is as odd has come before, on that side, and more than once."""
    far = F.col("median") + (F.col("value") - F.col("median")) * _LIKE
    above = F.col("value") > F.col("median")
    alike = F.filter("earlier", lambda one: F.when(above, one >= far).otherwise(one <= far))
    return F.size(alike) >= _HABIT


def _quantile(ordered: Column, share: float) -> Column:
    """Of an array in order; between two values half-way."""
    size = F.size(ordered)
    low = F.floor((size - 1) * share).cast("int")
    high = F.ceil((size - 1) * share).cast("int")
    return (F.get(ordered, low) + F.get(ordered, high)) / 2
