"""Ends of messages whose queue is not named: it was deleted while nobody owned its partition, and the next owner, which
drops what was in it, does not know what it was called. Of a message's copies it means the one in this partition that
has not ended, that its owner did not let go, and that this owner or a later one does not tell of. Where there are
several, it is all of them if the owner has dropped as many, each from a queue of its own, else any. As a look-up does.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.journeys import IN_DOUBT, NO_OWNER

_SAME = ["virtual_host", "partition"]
_PLACED = ("routed", "enqueued", "recovered")
_ENDS = ("settled", "expired", "dead_lettered", "dropped")


def with_queues(stages: DataFrame, places: DataFrame) -> DataFrame:
    """`stages`, and of such ends a row for each queue of the partition that messages of theirs may have been in.

    There is hardly ever one: then `places` (see `spark.places`) say so, and nothing is read for it.
    """
    ended = places.where("queue = '' and partition >= 0 and ends_alone").select("partition").distinct().collect()
    if not ended:
        return stages
    here = stages.where(F.col("partition").isin([row.partition for row in ended]))
    dropped = here.where("stage = 'dropped' and queue = ''")
    return stages.unionByName(_named(dropped, here.where("queue <> ''")).select(stages.columns))


def _named(dropped: DataFrame, told: DataFrame) -> DataFrame:
    """Message by message: they are as many as were in the queues that are gone."""
    ends = dropped.select("*", F.monotonically_increasing_id().alias("end_id"), F.inline("uids").alias("begin", "end"))
    there = told.where(F.col("stage").isin(*_PLACED)).withColumn("was_in", F.col("queue"))
    ranges = there.select(*_SAME, "was_in", F.inline("uids").alias("first", "last")).distinct()
    meet = (F.col("begin") <= F.col("last")) & (F.col("end") >= F.col("first"))
    each = F.explode(F.sequence(F.greatest("begin", "first"), F.least("end", "last")))
    found = ends.join(ranges, _SAME).where(meet).withColumn("uid", each)
    copies = found.dropDuplicates(["end_id", "was_in", "uid"]).drop("first", "last", "begin", "end")
    one = F.array(F.struct(F.col("uid").alias("first"), F.col("uid").alias("last")))
    return _matched(_left(copies, told)).withColumns({"queue": F.col("was_in"), "uids": one})


def _matched(left: DataFrame) -> DataFrame:
    """Each end with a copy of its own, where there are as many as copies; else with all of them, in doubt."""
    of_owner = Window.partitionBy(*_SAME, "epoch", "uid")
    ranks = {
        "end_rank": F.dense_rank().over(of_owner.orderBy("end_id")),
        "copy_rank": F.dense_rank().over(of_owner.orderBy("was_in")),
    }
    counts = {"ends": F.max("end_rank").over(of_owner), "copies": F.max("copy_rank").over(of_owner)}
    ranked = left.withColumns(ranks).withColumns(counts)
    is_sure = F.col("ends") >= F.col("copies")
    matched = ranked.where(~is_sure | (F.col("end_rank") == F.col("copy_rank")))
    return matched.withColumn("reason", F.when(is_sure, F.col("reason")).otherwise(IN_DOUBT))


def _left(copies: DataFrame, told: DataFrame) -> DataFrame:
    """Those that may have been in the queue: of which nothing says that they are elsewhere, or had ended."""
    of_copy = ["end_id", "was_in", "uid"]
    said = copies.alias("copy").join(_said(told).alias("other"), _speaks_of())
    elsewhere = F.col("other.is_end") | (F.col("other.epoch") >= F.col("copy.epoch"))
    known = said.groupBy(*(F.col(f"copy.{name}") for name in of_copy)).agg(
        F.max(elsewhere).alias("is_elsewhere"),
        F.max(F.when(F.col("other.is_let_go"), F.col("other.epoch"))).alias("let_go"),
        F.max(F.when(F.col("other.is_placed"), F.col("other.epoch"))).alias("placed"),
    )
    was_let_go = F.col("let_go") >= F.coalesce("placed", F.lit(0))  # what was not on disk, and did not come again
    otherwise = known.where(F.col("is_elsewhere") | was_let_go)
    return copies.join(otherwise.select(of_copy), of_copy, "left_anti")


def _said(told: DataFrame) -> DataFrame:
    """What owners say of copies: by epoch."""
    kinds = {
        "is_end": F.col("stage").isin(*_ENDS) & (F.col("reason") != NO_OWNER),
        "is_let_go": (F.col("stage") == "dropped") & (F.col("reason") == NO_OWNER),
        "is_placed": F.col("stage").isin(*_PLACED),
    }
    said = told.where("epoch > 0").withColumns(kinds)
    return said.select(*_SAME, "queue", "epoch", *kinds, F.inline("uids")).distinct()


def _speaks_of() -> Column:
    same = F.lit(True)
    for name in _SAME:
        same &= F.col(f"copy.{name}") == F.col(f"other.{name}")
    uid = F.col("copy.uid")
    within = (uid >= F.col("other.first")) & (uid <= F.col("other.last"))
    return same & (F.col("copy.was_in") == F.col("other.queue")) & within
