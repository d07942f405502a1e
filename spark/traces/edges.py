"""Which span caused which: from parents, and along links from one trace to another."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_END = ("trace_id", "span_id", "service", "operation", "destination", "start", "duration_us", "failed")


def edges(spans: DataFrame) -> DataFrame:
    """A row for each span and each that caused it: columns of both, as `from_…` and `to_…`, and `via`.

    `via` is `parent` or `link`. A link to the span's own parent says nothing new, and is left out. Causes that are not
    among `spans` are left out too: see `orphans`.
    """
    caused = causes(spans)
    ends = spans.select(*(F.col(name).alias(f"from_{name}") for name in _END))
    return caused.join(ends, ["from_trace_id", "from_span_id"])


def orphans(spans: DataFrame) -> DataFrame:
    """Edges whose cause is not among `spans`: it was not sampled, not exported, or dropped."""
    known = spans.select(F.col("trace_id").alias("from_trace_id"), F.col("span_id").alias("from_span_id"))
    return causes(spans).join(known, ["from_trace_id", "from_span_id"], "left_anti")


def causes(spans: DataFrame) -> DataFrame:
    """For each span the ids of what caused it, whether that is known or not."""
    to = [F.col(name).alias(f"to_{name}") for name in _END]
    parents = spans.where("parent_id != ''").select(
        *to,
        F.col("trace_id").alias("from_trace_id"),
        F.col("parent_id").alias("from_span_id"),
        F.lit("parent").alias("via"),
    )
    linked = spans.select(*to, "parent_id", F.explode("links").alias("link"))
    own_parent = (F.col("link.trace_id") == F.col("to_trace_id")) & (F.col("link.span_id") == F.col("parent_id"))
    links = linked.where(~own_parent).select(
        *(f"to_{name}" for name in _END),
        F.col("link.trace_id").alias("from_trace_id"),
        F.col("link.span_id").alias("from_span_id"),
        F.lit("link").alias("via"),
    )
    return parents.unionByName(links)
