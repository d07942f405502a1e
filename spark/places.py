"""What is known of queues, partitions and their owners: small tables, from one pass over few columns of the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.as_of import AsOf
from spark.journeys import NO_OWNER, place
from spark.terms import Gap, Term, Told, Unread, files_to_blame, makers, terms, to_blame

BLAMED = "array<struct<time: long, words: string, since: long>>"
_TERMS = (
    "partition int, epoch long, current_epoch long, term_began long, owner_ended long, "
    f"gaps {BLAMED}, found_gaps {BLAMED}, sent_until long, own_gaps {BLAMED}, takeovers array<long>, untold boolean"
)
_UNREAD = f"unread long, unread_files {BLAMED}"
KEYS = ("virtual_host", "queue", "partition", "instance", "epoch")


def places(stages: DataFrame) -> DataFrame:
    """Each queue and partition with each instance and epoch that told of it; kept, for several tables come from it.

    Only owners tell an epoch: rows of others have 0.
    """
    times = F.unix_micros("time")
    told = stages.groupBy(*KEYS)
    alone = F.col("stage").isin("expired", "dropped", "dead_lettered") & ~F.col("reason").isin("rejected", NO_OWNER)
    known = told.agg(
        F.min(times).alias("first_time"),
        F.max(times).alias("last_time"),
        F.max(alone & (F.col("service") == "queue")).alias("ends_alone"),
        F.max(F.when(F.col("stage") == "handed_over", times)).alias("handed_time"),
        F.min(F.when(F.col("stage") == "taken_over", times)).alias("taken_time"),
    )
    # In one partition nothing that comes from it is shuffled again: each shuffle would take longer than the work.
    return known.coalesce(1).cache()


def names(places: DataFrame) -> DataFrame:
    """Virtual host and queue of each place of `spark.journeys`."""
    queues = places.select("virtual_host", "queue")
    hosts = places.select("virtual_host", F.lit("").alias("queue"))
    return queues.union(hosts).coalesce(1).distinct().withColumn("place", place())


def record(places: DataFrame, as_of: AsOf, unread: Sequence[Unread] = ()) -> DataFrame:
    """One row: when the record begins and ends (µs), as of when it is judged and why then; and how many files could not
    be read, and which.
    """
    extent = places.agg(F.min("first_time").alias("record_begin"), F.max("last_time").alias("record_end"))
    judged = F.col("record_end") if as_of.time is None else F.unix_micros(F.lit(as_of.time))
    known = places.sparkSession.createDataFrame([(len(unread), files_to_blame(unread))], _UNREAD)
    return extent.withColumns({"as_of": judged, "as_of_why": F.lit(as_of.why)}).crossJoin(F.broadcast(known))


def all_gaps(gaps: DataFrame) -> list[Gap]:
    """The gaps of the record: they are few."""
    times = (F.unix_micros(name).alias(name) for name in ("time", "since"))
    return [Gap(*row) for row in gaps.select("service", "instance", "reason", *times).collect()]


def all_terms(places: DataFrame, gaps: Sequence[Gap]) -> list[Term]:
    """The owners of each partition by epoch, and what gaps may hide of it: as many rows as there were owners."""
    heard = {row[0]: row[1] for row in places.groupBy("instance").agg(F.max("last_time")).collect()}
    owned = places.where("partition >= 0 and epoch > 0").groupBy("partition", "epoch", "instance")
    told = owned.agg(F.min("first_time"), F.max("handed_time"), F.min("taken_time"))
    return terms([Told(*row) for row in told.collect()], gaps, heard)


def table_of(found: Sequence[Term], session: SparkSession) -> DataFrame:
    """Terms as a table, to be joined with segments by `partition` and `epoch`."""
    return session.createDataFrame(found, _TERMS)


def gaps_of_makers(gaps: Sequence[Gap], session: SparkSession) -> DataFrame:
    """The `maker_gaps` of each gateway by the `maker` that uids name: their origin."""
    return session.createDataFrame(list(makers(gaps).items()), f"maker long, maker_gaps {BLAMED}")


def gaps_of_queues(gaps: Sequence[Gap], session: SparkSession) -> DataFrame:
    """One row: the gaps of all queue processes, for those that are `anybodys`."""
    of_queues = to_blame(gap for gap in gaps if gap.service != "gateway")
    return session.createDataFrame([(True, of_queues)], f"anybodys boolean, queue_gaps {BLAMED}")


def ending_alone(places: DataFrame) -> DataFrame:
    """The `place` of each queue whose messages also ended without any consumer: that expired, or were dropped."""
    return places.where("ends_alone").select(place().alias("place"), F.lit(True).alias("ends_alone")).distinct()
