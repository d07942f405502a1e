"""Critical path: where the time of a message goes, for the ordinary and for the slowest, and what a faster hop saves.

A message goes two ways that end by themselves: to its consumer, and back to its publisher as a confirm. On each, hops
follow one another, so that what is taken off one is taken off the whole.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from spark.histogram import bucket
from spark.hops import timed
from spark.job import Inputs, Job, Table, column
from spark.places import names, places

# The times along each way, in order. One that is not told (a transient message is not persisted) is passed over.
PATHS = {
    "delivery": (
        ("route", "routed_at"),
        ("enqueue", "enqueued_at"),
        ("wait", "delivered_at"),
        ("send", "sent_at"),
        ("settle", "settled_at"),
    ),
    "confirm": (
        ("route", "routed_at"),
        ("enqueue", "enqueued_at"),
        ("persist", "persisted_at"),
        ("answer", "confirmed_at"),
    ),
}
_BEGIN = "received_at"

# Shares of messages, fastest first, between which a message counts as ordinary; and beyond which as slowest.
_ORDINARY = (0.25, 0.75)
_SLOWEST = 0.99

_SHARES = (
    column("path", StringType(), "delivery (received to settled) or confirm (received to confirmed)"),
    column("of", StringType(), "ordinary (the middle half) or slowest (one in a hundred)"),
    column("hop", StringType(), "route, enqueue, wait, send, settle; route, enqueue, persist, answer"),
    column("messages", LongType(), "of that sort"),
    column("mean_us", LongType(), "that the hop takes them"),
    column("share", DoubleType(), "of the whole way's time"),
    column("whole_us", LongType(), "mean of the whole way"),
    column("saved_us", LongType(), "of the whole, were the hop twice as fast"),
)
_QUEUE = (column("virtual_host", StringType(), ""), column("queue", StringType(), ""))
ALL = Table(StructType(list(_SHARES)), ("-path", "of", "-share"))
STAGES = Table(StructType([*_QUEUE, *_SHARES]), ("virtual_host", "queue", "-path", "of", "-share"))


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """Where the time goes."""
    segments = timed(inputs.stages)
    ways = F.inline(F.array(*(_way(path) for path in PATHS)))
    # How long hops take is added up by how long the whole takes: a small table, from which sorts are told apart.
    hop = F.posexplode("hops").alias("place_on_path", "took")
    walked = segments.select("place", "messages", ways).where("whole is not null")
    summed = (
        walked.select("place", "path", "messages", "whole", hop)
        .groupBy("place", "path", "place_on_path", bucket(F.col("whole")).alias("bucket"))
        .agg(
            F.sum("messages").alias("messages"),
            F.sum(F.col("took") * F.col("messages")).alias("took"),
            F.sum(F.col("whole") * F.col("messages")).alias("whole"),
        )
        .cache()
    )
    sums = (F.sum(name).alias(name) for name in ("messages", "took", "whole"))
    of_all = summed.groupBy(F.lit(0).alias("place"), "path", "place_on_path", "bucket").agg(*sums)
    queues = names(places(inputs.stages))
    return {
        "all": _stages(_sorted(of_all)),
        "stages": _stages(_sorted(summed)).join(F.broadcast(queues), "place", "left"),
    }


def _way(path: str) -> Column:
    """The whole time of a path, and that of each hop; null where its end was not reached."""
    times = [F.col(_BEGIN), *(F.col(name) for _, name in PATHS[path])]
    # Clocks disagree: what seems to have been before the step before was at the same time.
    reached = [reduce(_later, times[: place + 1]) for place in range(len(times))]
    hops = [end - begin for begin, end in pairwise(reached)]
    ended = times[0].isNotNull() & times[-1].isNotNull()
    return F.struct(
        F.lit(path).alias("path"),
        F.when(ended, reached[-1] - reached[0]).alias("whole"),
        F.array(*hops).alias("hops"),
    )


def _later(so_far: Column, time: Column) -> Column:
    return F.greatest(so_far, time)


def _sorted(summed: DataFrame) -> DataFrame:
    """Adds the sort of message that a bucket is of: those whose middle is in a sort's share of all."""
    of_path = Window.partitionBy("place", "path", "place_on_path")
    before = of_path.orderBy("bucket").rowsBetween(Window.unboundedPreceding, -1)
    rank = (F.coalesce(F.sum("messages").over(before), F.lit(0)) + F.col("messages") / 2) / F.sum("messages").over(
        of_path
    )
    slowest = (rank >= _SLOWEST) | (F.col("bucket") == F.max("bucket").over(of_path))
    ranked = summed.withColumn("ordinary", rank.between(*_ORDINARY)).withColumn("slowest", slowest)
    sorts = [F.when(F.col(name), F.lit(name)) for name in ("ordinary", "slowest")]
    return ranked.select("*", F.explode(F.array(*sorts)).alias("of")).where("of is not null")


def _stages(sorted_: DataFrame) -> DataFrame:
    hop = F.when(F.col("path") == "delivery", _name("delivery")).otherwise(_name("confirm"))
    return (
        sorted_.groupBy("place", "path", "of", hop.alias("hop"))
        .agg(F.sum("messages").alias("messages"), F.sum("took").alias("took"), F.sum("whole").alias("whole"))
        .withColumns(
            {
                "mean_us": (F.col("took") / F.col("messages")).cast("long"),
                "share": F.when(F.col("whole") > 0, F.col("took") / F.col("whole")).otherwise(F.lit(0.0)),
                "whole_us": (F.col("whole") / F.col("messages")).cast("long"),
                "saved_us": (F.col("took") / F.col("messages") / 2).cast("long"),
            }
        )
    )


def _name(path: str) -> Column:
    return F.get(F.array(*(F.lit(name) for name, _ in PATHS[path])), F.col("place_on_path"))


JOB = Job("critical-path", {"all": ALL, "stages": STAGES}, transform, frozenset({"stages"}))
