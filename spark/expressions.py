"""Expressions that several analyses are made of."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_STEPS = 32  # in which a time grows e-fold: 1.6 % from its true value at the most

ENDS = ("accepted", "rejected", "expired", "dead_lettered", "moved", "dropped", "let_go")


def messages() -> Column:
    """How many messages a segment is of."""
    return F.col("messages")


def told(*stages: str) -> Column:
    """Of rows of the ledger: how many messages they say reached any of these stages."""
    return total(F.col("stage").isin(*stages), F.col("count"))


def total(which: Column, number: Column) -> Column:
    """The sum of a whole number where `which` is true; 0 where it never is."""
    return F.coalesce(F.sum(F.when(which, number.cast("long"))), F.lit(0))


def elapsed(begin: str, end: str) -> Column:
    """µs between two times of a segment; null where one is not known, 0 where clocks disagree so much."""
    took = F.col(end) - F.col(begin)
    return F.when(took.isNotNull(), F.greatest(took, F.lit(0)))


def percentile(took: Column, share: float, weight: Column | None = None) -> Column:
    """The time that so great a share of messages did not exceed, in µs.

    Times are rounded, by 1.6 % at the most, so that what an aggregate has to remember does not grow with the ledger;
    but never below the least or above the greatest, which is right where all are alike.
    """
    rounded = F.when(took <= 0, F.lit(0.0)).otherwise(F.exp(F.round(F.ln(took) * _STEPS) / _STEPS))
    about = F.round(F.percentile(rounded, share, messages() if weight is None else weight)).cast("long")
    least, greatest = (F.greatest(bound(took), F.lit(0).cast("long")) for bound in (F.min, F.max))
    return F.least(F.greatest(about, least), greatest)


def share(part: Column, whole: Column) -> Column:
    """A part of a whole, 0 of nothing."""
    return F.when(whole > 0, part / whole).otherwise(F.lit(0.0))


def identity(*columns: str) -> Column:
    """Several names as one number, for a measure; see `names_of`."""
    return F.xxhash64(*columns)
