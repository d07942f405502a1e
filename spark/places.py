"""What is known of queues, partitions and their owners: small tables, from one pass over few columns of the ledger."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.journeys import place


def places(stages: DataFrame) -> DataFrame:
    """Each queue and partition with each instance that told of it; kept, for several tables come from it."""
    keys = ("virtual_host", "queue", "partition", "instance")
    times = F.unix_micros("time")
    told = stages.groupBy(*keys)
    return told.agg(
        F.max("epoch").alias("epoch"), F.min(times).alias("first_time"), F.max(times).alias("last_time")
    ).cache()


def names(places: DataFrame) -> DataFrame:
    """Virtual host and queue of each place of `spark.journeys`."""
    queues = places.select("virtual_host", "queue")
    hosts = places.select("virtual_host", F.lit("").alias("queue"))
    return queues.union(hosts).distinct().withColumn("place", place())


def current_epochs(places: DataFrame) -> DataFrame:
    """The latest epoch that each partition is known to have had."""
    return places.where("partition >= 0").groupBy("partition").agg(F.max("epoch").alias("current_epoch"))


def record(places: DataFrame, gaps: DataFrame) -> DataFrame:
    """One row: when the record begins and ends (µs), and the last gap of any instance, null if there is none."""
    extent = places.agg(F.min("first_time").alias("record_begin"), F.max("last_time").alias("record_end"))
    last = gaps.agg(F.max(F.unix_micros("time")).alias("any_gap"))
    return extent.crossJoin(F.broadcast(last))


def gaps_by_partition(places: DataFrame, gaps: DataFrame) -> DataFrame:
    """The last gap (µs) of those who owned each partition; a gap of one of whom nothing is known is everybody's."""
    noticed = gaps.select("instance", F.unix_micros("time").alias("gap"))
    owners = places.where("partition >= 0").select("partition", "instance").distinct()
    strangers = noticed.join(owners.select("instance").distinct(), "instance", "left_anti")
    of_strangers = strangers.agg(F.max("gap").alias("strangers_gap"))
    by_owner = owners.join(F.broadcast(noticed), "instance", "left").groupBy("partition").agg(F.max("gap").alias("gap"))
    return by_owner.crossJoin(F.broadcast(of_strangers)).select(
        "partition", F.greatest("gap", "strangers_gap").alias("partition_gap")
    )
