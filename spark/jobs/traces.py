"""Traces: which service calls or feeds which, by spans of applications and of the broker, along parents and links."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType

from spark.expressions import percentile, total
from spark.job import Inputs, Job, Table, column
from spark.traces.attributes import lasting
from spark.traces.edges import edges, orphans

_LATENCY = (
    column("spans", LongType(), ""),
    column("errors", LongType(), ""),
    column("p50_us", LongType(), ""),
    column("p95_us", LongType(), ""),
    column("max_us", LongType(), ""),
)
SERVICES = Table(
    StructType(
        [
            column("from_service", StringType(), ""),
            column("to_service", StringType(), "may be the same one"),
            column("via", StringType(), "parent, or link: from another trace, or one of several causes"),
            column("operation", StringType(), 'send, receive, process, settle, create; "" for what is no messaging'),
            column("destination", StringType(), ""),
            *_LATENCY,
            column("early", LongType(), "spans that seem to begin before their cause: clocks disagree"),
        ]
    ),
    ("-spans", "from_service", "to_service"),
)
OPERATIONS = Table(
    StructType(
        [
            column("service", StringType(), ""),
            column("operation", StringType(), "as above"),
            column("destination", StringType(), ""),
            column("name", StringType(), "of the span; * for what is another one in each run, as consumer tags"),
            *_LATENCY,
        ]
    ),
    ("-spans", "service", "name"),
)
ORPHANS = Table(
    StructType(
        [
            column("service", StringType(), ""),
            column("via", StringType(), "parent or link"),
            column("operation", StringType(), "as above"),
            column("spans", LongType(), "whose cause is not on record: not sampled, not exported, or dropped"),
        ]
    ),
    ("-spans", "service"),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """The graphs that spans tell of."""
    spans = inputs.spans
    found = edges(spans).where("via = 'link' or from_service != to_service")
    by_edge = ("from_service", "to_service", "via", "operation", "destination")
    named = found.withColumn("destination", lasting(F.col("to_destination"))).withColumnRenamed(
        "to_operation", "operation"
    )
    done = [lasting(F.col(name)).alias(name) for name in ("destination", "name")]
    missing = orphans(spans).groupBy(
        F.col("to_service").alias("service"), "via", F.col("to_operation").alias("operation")
    )
    early = F.count_if(F.col("to_start") < F.col("from_start")).alias("early")
    return {
        "services": named.groupBy(*by_edge).agg(*_latency("to_duration_us", "to_failed"), early),
        "operations": spans.groupBy("service", "operation", *done).agg(*_latency("duration_us", "failed")),
        "orphans": missing.agg(F.count("*").alias("spans")),
    }


def _latency(took: str, failed: str) -> list[Column]:
    one = F.lit(1).cast("long")
    return [
        F.count("*").alias("spans"),
        total(F.col(failed), one).alias("errors"),
        percentile(F.col(took), 0.5, one).alias("p50_us"),
        percentile(F.col(took), 0.95, one).alias("p95_us"),
        F.max(took).alias("max_us"),
    ]


JOB = Job(
    "traces", {"services": SERVICES, "operations": OPERATIONS, "orphans": ORPHANS}, transform, frozenset({"spans"})
)
