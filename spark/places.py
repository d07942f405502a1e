"""What is known of queues, partitions and their owners: small tables, from one pass over few columns of the ledger."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.journeys import place

KEYS = ("virtual_host", "queue", "partition", "instance", "epoch")


def places(stages: DataFrame) -> DataFrame:
    """Each queue and partition with each instance and epoch that told of it; kept, for several tables come from it.

    Only owners tell an epoch: rows of others have 0.
    """
    times = F.unix_micros("time")
    told = stages.groupBy(*KEYS)
    known = told.agg(F.min(times).alias("first_time"), F.max(times).alias("last_time"))
    # In one partition nothing that comes from it is shuffled again: each shuffle would take longer than the work.
    return known.coalesce(1).cache()


def names(places: DataFrame) -> DataFrame:
    """Virtual host and queue of each place of `spark.journeys`."""
    queues = places.select("virtual_host", "queue")
    hosts = places.select("virtual_host", F.lit("").alias("queue"))
    return queues.union(hosts).coalesce(1).distinct().withColumn("place", place())


def record(places: DataFrame, gaps: DataFrame) -> DataFrame:
    """One row: when the record begins and ends (µs), and the last gap of any instance, null if there is none."""
    extent = places.agg(F.min("first_time").alias("record_begin"), F.max("last_time").alias("record_end"))
    last = gaps.agg(F.max(F.unix_micros("time")).alias("any_gap"))
    return extent.crossJoin(F.broadcast(last))


def owners(places: DataFrame, gaps: DataFrame) -> DataFrame:
    """Each partition that had an owner: `current_epoch`, and in µs `term_began`, when that owner was first heard of;
    `owner_ended`, when it was missed for good, null if it was not; `partition_gap`, the last gap of any of its owners.

    A gap of one of whom nothing is known is everybody's.
    """
    silent = F.when(F.col("reason") == "silent", F.unix_micros("time"))
    noticed = gaps.groupBy("instance").agg(F.max(F.unix_micros("time")).alias("gap"), F.max(silent).alias("silent"))
    heard = places.groupBy("instance").agg(F.max("last_time").alias("heard"))
    strangers = noticed.join(heard, "instance", "left_anti").agg(F.max("gap").alias("strangers_gap"))
    terms = places.where("partition >= 0 and epoch > 0").groupBy("partition", "instance", "epoch")
    ended = F.when(F.col("silent") > F.col("heard"), F.col("silent")).alias("ended")
    latest = F.max(F.struct("epoch", "began", ended))
    by_partition = (
        terms.agg(F.min("first_time").alias("began"))
        .join(F.broadcast(noticed), "instance", "left")
        .join(F.broadcast(heard), "instance")
        .groupBy("partition")
        .agg(latest.alias("latest"), F.max("gap").alias("gap"))
    )
    return by_partition.crossJoin(F.broadcast(strangers)).select(
        "partition",
        F.col("latest.epoch").alias("current_epoch"),
        F.col("latest.began").alias("term_began"),
        F.col("latest.ended").alias("owner_ended"),
        F.greatest("gap", "strangers_gap").alias("partition_gap"),
    )
