"""Latency: how long each hop of a message's way takes, and how long messages wait in queues."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from spark.histogram import histogram, percentiles
from spark.hops import taken, timed
from spark.job import Inputs, Job, Table, column
from spark.places import names, places

KEYS = ("place", "partition", "hop")

_TIMES = (
    column("messages", LongType(), "copies that took the hop"),
    column("p50_us", LongType(), "µs; percentiles are 1.6 % off at the most"),
    column("p95_us", LongType(), ""),
    column("p99_us", LongType(), ""),
    column("max_us", LongType(), ""),
    column("mean_us", LongType(), ""),
)
_QUEUE = (column("virtual_host", StringType(), ""), column("queue", StringType(), ""))
_HOP = column(
    "hop",
    StringType(),
    "route, enqueue, persist, wait (enqueued to first delivered), send (to the consumer's socket), settle; "
    "confirm (received to confirmed), end_to_end (received to settled)",
)
HOPS = Table(
    StructType([*_QUEUE, column("partition", IntegerType(), "-1 if it is not told"), _HOP, *_TIMES]),
    ("virtual_host", "queue", "-messages", "hop"),
)
ALL = Table(StructType([_HOP, *_TIMES]), ("-messages", "hop"))
WAITS = Table(StructType([*_QUEUE, *_TIMES]), ("-p99_us", "virtual_host", "queue"))


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """How long things take."""
    # One pass over everything gives these small tables, from which the others come.
    times = histogram(taken(timed(inputs.stages)), KEYS).cache()
    return summaries(times, names(places(inputs.stages)))


def summaries(times: DataFrame, queues: DataFrame) -> dict[str, DataFrame]:
    """The tables, from histograms by KEYS and from names of queues."""
    named = times.join(F.broadcast(queues), "place", "left").fillna(-1, ["partition"])
    by_queue = ("virtual_host", "queue")
    return {
        "all": percentiles(named, ("hop",)),
        "hops": percentiles(named, (*by_queue, "partition", "hop")),
        "waits": percentiles(named.where(F.col("hop") == "wait"), by_queue),
    }


JOB = Job("latency", {"all": ALL, "hops": HOPS, "waits": WAITS}, transform, frozenset({"stages"}))
