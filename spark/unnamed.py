"""Ends of messages whose queue is not named: it was deleted while nobody owned its partition, and the next owner, which
drops what was in it, does not know what it was called. Of a message's copies it means the one in this partition that
has not ended, and that this owner or a later one does not tell of; where there are several, either. As a look-up does.
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
    left = copies.alias("copy").join(_elsewhere(told).alias("other"), _is_told_otherwise(), "left_anti")
    several = F.count("*").over(Window.partitionBy("end_id", "uid")) > 1
    one = F.array(F.struct(F.col("uid").alias("first"), F.col("uid").alias("last")))
    reason = F.when(several, IN_DOUBT).otherwise(F.col("reason"))
    return left.withColumn("reason", reason).withColumns({"queue": F.col("was_in"), "uids": one})


def _elsewhere(told: DataFrame) -> DataFrame:
    """What says that copies are, or had ended: by epoch."""
    is_end = F.col("stage").isin(*_ENDS) & (F.col("reason") != NO_OWNER)
    said = told.where("epoch > 0").select(*_SAME, "queue", "epoch", is_end.alias("is_end"), F.inline("uids"))
    return said.distinct()


def _is_told_otherwise() -> Column:
    same = F.lit(True)
    for name in _SAME:
        same &= F.col(f"copy.{name}") == F.col(f"other.{name}")
    uid = F.col("copy.uid")
    within = (uid >= F.col("other.first")) & (uid <= F.col("other.last"))
    later = F.col("other.is_end") | (F.col("other.epoch") >= F.col("copy.epoch"))
    return same & (F.col("copy.was_in") == F.col("other.queue")) & within & later
