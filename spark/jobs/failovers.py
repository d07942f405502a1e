"""Failovers: how long each partition was without an owner when its lease moved, and who had to wait."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructType, TimestampType

from spark.expressions import total
from spark.job import Inputs, Job, Table, column

MOVES = Table(
    StructType(
        [
            column("partition", IntegerType(), ""),
            column("epoch", LongType(), "of the new owner"),
            column("source", StringType(), "queue process that had it before"),
            column("target", StringType(), "that took it"),
            column("how", StringType(), "handed_over, crash, or unknown where nothing was found in it"),
            column("last_seen", TimestampType(), "last word of the former owner on it"),
            column("first_seen", TimestampType(), "first word of the new one"),
            column("silence_us", LongType(), "between the two, by their own clocks; 0 where these disagree"),
            column("waited", LongType(), "copies that gateways routed there in between"),
            column("blocked_us", LongType(), "from the first of these to the new owner's first word; 0 if none waited"),
            column("recovered", LongType(), "copies that the new owner found"),
        ]
    ),
    ("-blocked_us", "-silence_us", "partition", "epoch"),
)
PARTITIONS = Table(
    StructType(
        [
            column("partition", IntegerType(), ""),
            column("moves", LongType(), ""),
            column("crashes", LongType(), "of its owners"),
            column("silence_us", LongType(), "together"),
            column("blocked_us", LongType(), "together"),
            column("waited", LongType(), "copies"),
        ]
    ),
    ("-blocked_us", "-silence_us", "partition"),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """Each change of epoch, with what was published meanwhile."""
    moves = _moves(_terms(inputs.stages))
    found = _with_waiting(moves, inputs.stages).cache()
    partitions = found.groupBy("partition").agg(
        F.count("*").alias("moves"),
        F.count_if(F.col("how") == "crash").alias("crashes"),
        *(F.sum(name).alias(name) for name in ("silence_us", "blocked_us", "waited")),
    )
    return {"moves": found, "partitions": partitions}


def _terms(stages: DataFrame) -> DataFrame:
    """When each owner of each partition spoke: a small table."""
    told = stages.where((F.col("service") == "queue") & (F.col("partition") >= 0) & (F.col("epoch") > 0))
    found = F.col("stage") == "recovered"
    return told.groupBy("partition", "epoch").agg(
        F.max("instance").alias("target"),
        F.min("time").alias("first_seen"),
        F.max("time").alias("end"),
        total(found, F.col("count")).alias("recovered"),
        total(found & (F.col("reason") == "handed_over"), F.col("count")).alias("handed_over"),
    )


def _moves(terms: DataFrame) -> DataFrame:
    before = Window.partitionBy("partition").orderBy("epoch")
    silence = F.unix_micros("first_seen") - F.unix_micros("last_seen")
    how = F.when(F.col("handed_over") > 0, "handed_over").when(F.col("recovered") > 0, "crash").otherwise("unknown")
    return (
        terms.withColumns({"source": F.lag("target").over(before), "last_seen": F.lag("end").over(before)})
        .where("source is not null")
        .withColumns({"silence_us": F.greatest(silence, F.lit(0)), "how": how})
        .drop("end", "handed_over")
    )


def _with_waiting(moves: DataFrame, stages: DataFrame) -> DataFrame:
    routed = stages.where(F.col("stage") == "routed").select("partition", "time", "count")
    meanwhile = (F.col("time") > F.col("last_seen")) & (F.col("time") <= F.col("first_seen"))
    between = moves.select("partition", "epoch", "last_seen", "first_seen")
    waited = (
        routed.join(F.broadcast(between), "partition")
        .where(meanwhile)
        .groupBy("partition", "epoch")
        .agg(F.sum("count").alias("waited"), F.min("time").alias("first_routed"))
    )
    blocked = F.unix_micros("first_seen") - F.unix_micros("first_routed")
    joined = moves.join(waited, ["partition", "epoch"], "left")
    return joined.withColumn("blocked_us", blocked).na.fill(0, ["waited", "blocked_us"])


JOB = Job("failovers", {"moves": MOVES, "partitions": PARTITIONS}, transform, frozenset({"stages"}))
