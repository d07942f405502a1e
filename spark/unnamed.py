"""Ends of messages whose queue is not named: it was deleted while nobody owned its partition, and the next owner, which
drops what was in it, does not know what it was called. Of a message's copies it means the one in this partition.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_SAME = ("virtual_host", "partition")


def with_queues(stages: DataFrame, places: DataFrame) -> DataFrame:
    """`stages`, and of such ends a row for each queue of the partition that messages of theirs were in.

    There is hardly ever one: then `places` (see `spark.places`) say so, and nothing is read for it.
    """
    ended = places.where("queue = '' and partition >= 0 and ends_alone").select("partition").distinct().collect()
    if not ended:
        return stages
    here = stages.where(F.col("partition").isin([row.partition for row in ended]))
    dropped = here.where("stage = 'dropped' and queue = ''").select("*", F.inline("uids").alias("begin", "end"))
    return stages.unionByName(_named(dropped, _were_in(here)).select(stages.columns))


def _were_in(stages: DataFrame) -> DataFrame:
    """Which uids were in which queue; each range once, however often it was told."""
    enqueued = stages.where("stage = 'enqueued' and queue <> ''")
    return enqueued.select(*_SAME, F.col("queue").alias("was_in"), F.inline("uids").alias("first", "last")).distinct()


def _named(dropped: DataFrame, were_in: DataFrame) -> DataFrame:
    meet = (F.col("begin") <= F.col("last")) & (F.col("end") >= F.col("first"))
    both = F.struct(F.greatest("begin", "first").alias("first"), F.least("end", "last").alias("last"))
    found = dropped.join(were_in, list(_SAME)).where(meet)
    return found.withColumns({"queue": F.col("was_in"), "uids": F.array(both)})
