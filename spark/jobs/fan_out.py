"""Fan-out: what one publish becomes in queues, by exchange and routing key, and which bindings make most of it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from spark.expressions import share, told, total
from spark.job import Inputs, Job, Table, column

_KEYS = ("virtual_host", "exchange", "routing_key")

PUBLISHES = Table(
    StructType(
        [
            column("virtual_host", StringType(), ""),
            column("exchange", StringType(), '"" is the default exchange'),
            column("routing_key", StringType(), ""),
            column("messages", LongType(), "received"),
            column("copies", LongType(), "of them in queues"),
            column("amplification", DoubleType(), "copies of a message, on average"),
            column("queues", LongType(), "that got any"),
            column("unrouted", LongType(), "messages that went to no queue"),
            column("bytes", LongType(), "received: bodies and properties"),
            column("bytes_out", LongType(), "the same in queues: bytes times amplification"),
        ]
    ),
    ("-bytes_out", "-copies", *_KEYS),
)
BINDINGS = Table(
    StructType(
        [
            *PUBLISHES.schema.fields[:3],
            column("queue", StringType(), ""),
            column("copies", LongType(), ""),
            column("share", DoubleType(), "of the copies of all publishes"),
        ]
    ),
    ("-copies", *_KEYS, "queue"),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """Counts of rows; no message is looked at."""
    # Dead letters are routed by queue processes: no client published them.
    told_by_gateways = inputs.stages.where(F.col("service") == "gateway")
    targets = (
        told_by_gateways.where(F.col("stage").isin("received", "routed", "returned", "dropped"))
        .groupBy(*_KEYS, "queue")
        .agg(
            told("received").alias("messages"),
            told("routed").alias("copies"),
            told("returned", "dropped").alias("unrouted"),
            total(F.col("stage") == "received", F.col("bytes")).alias("bytes"),
        )
        .cache()
    )
    return {"publishes": _publishes(targets), "bindings": _bindings(targets)}


def _publishes(targets: DataFrame) -> DataFrame:
    sums = ("messages", "copies", "unrouted", "bytes")
    by_key = targets.groupBy(*_KEYS).agg(
        *(F.sum(name).alias(name) for name in sums), F.count_if(F.col("copies") > 0).alias("queues")
    )
    return by_key.withColumn("amplification", share(F.col("copies"), F.col("messages"))).withColumn(
        "bytes_out", F.round(F.col("bytes") * F.col("amplification"))
    )


def _bindings(targets: DataFrame) -> DataFrame:
    routed = targets.where("copies > 0")
    everything = routed.agg(F.sum("copies").alias("everything"))
    return routed.crossJoin(F.broadcast(everything)).withColumn("share", share(F.col("copies"), F.col("everything")))


JOB = Job("fan-out", {"publishes": PUBLISHES, "bindings": BINDINGS}, transform, frozenset({"stages"}))
