"""Hot partitions: how work is spread over partitions and over queue processes, and what to move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructType

from spark.balance import Load, suggest
from spark.expressions import elapsed, messages, percentile, share, told
from spark.job import Inputs, Job, Table, column
from spark.journeys import journeys, kinds
from spark.ranges import Measure

_MOVES = 8

# What a queue process does with a message; each of them costs it about the same.
_WORK = ("enqueued", "delivered", "settled")

_WAITING = (
    Measure("partition", kinds("enqueued"), "max", "partition"),
    Measure("enqueued_at", kinds("enqueued"), "min", "time"),
    Measure("delivered_at", kinds("delivered"), "min", "time"),
)

PARTITIONS = Table(
    StructType(
        [
            column("partition", IntegerType(), ""),
            column("owner", StringType(), "queue process: that of the latest epoch"),
            column("epoch", LongType(), ""),
            column("messages", LongType(), "enqueued"),
            column("per_second", DoubleType(), "messages enqueued, over the whole record"),
            column("work", LongType(), "messages enqueued, delivered and settled"),
            column("share", DoubleType(), "of all work"),
            column("wait_seconds", DoubleType(), "spent by messages in queues before the first delivery, together"),
            column("wait_share", DoubleType(), "of all waiting"),
            column("wait_p95_us", LongType(), ""),
            column("queues", LongType(), "with any work"),
            column("hottest_host", StringType(), "virtual host of"),
            column("hottest_queue", StringType(), "the queue with most work"),
            column("hottest_share", DoubleType(), "of the partition's work"),
        ]
    ),
    ("-share", "partition"),
)
OWNERS = Table(
    StructType(
        [
            column("owner", StringType(), "queue process"),
            column("partitions", LongType(), ""),
            column("work", LongType(), ""),
            column("share", DoubleType(), "of all work"),
        ]
    ),
    ("-share", "owner"),
)
SKEW = Table(
    StructType(
        [
            column("of", StringType(), "partitions or owners"),
            column("count", LongType(), "with any work"),
            column("gini", DoubleType(), "0: all have the same, towards 1: one has everything"),
            column("greatest_share", DoubleType(), ""),
            column("times_fair", DoubleType(), "the greatest share over a fair one"),
        ]
    ),
    ("-of",),
)
MOVES = Table(
    StructType(
        [
            column("command", StringType(), "what to run"),
            column("partitions", StringType(), ""),
            column("source", StringType(), ""),
            column("target", StringType(), ""),
            column("share", DoubleType(), "of all work that moves"),
        ]
    ),
    ("-share",),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """How work is spread, and how it should be."""
    queues = _queues(inputs.stages).cache()
    partitions = _partitions(queues, _waits(inputs.stages)).cache()
    owners = _owners(partitions)
    moves = partitions.select("partition", "owner", "work").coalesce(1)
    return {
        "partitions": partitions,
        "owners": owners,
        "skew": _skew(partitions, "partitions").union(_skew(owners, "owners")),
        "moves": moves.mapInArrow(_suggester(int(inputs.number("moves", _MOVES))), MOVES.schema),
    }


def _queues(stages: DataFrame) -> DataFrame:
    """What each owner did for each queue: a small table."""
    rows = stages.where((F.col("service") == "queue") & (F.col("partition") >= 0))
    return rows.groupBy("partition", "virtual_host", "queue", "instance").agg(
        F.max("epoch").alias("epoch"),
        told("enqueued").alias("messages"),
        told(*_WORK).alias("work"),
        F.unix_micros(F.min("time")).alias("begin"),
        F.unix_micros(F.max("time")).alias("end"),
    )


def _waits(stages: DataFrame) -> DataFrame:
    waited = journeys(stages, _WAITING, ()).withColumn("wait", elapsed("enqueued_at", "delivered_at"))
    return waited.groupBy("partition").agg(
        (F.sum(F.col("wait") * messages()) / 1e6).alias("wait_seconds"),
        percentile(F.col("wait"), 0.95).alias("wait_p95_us"),
    )


def _partitions(queues: DataFrame, waits: DataFrame) -> DataFrame:
    by_queue = queues.groupBy("partition", "virtual_host", "queue").agg(F.sum("work").alias("queue_work"))
    hottest = by_queue.groupBy("partition").agg(
        F.count_if((F.col("queue_work") > 0) & (F.col("queue") != "")).alias("queues"),
        F.max_by(F.struct("virtual_host", "queue", "queue_work"), "queue_work").alias("hottest"),
    )
    owned = queues.groupBy("partition").agg(
        F.max_by("instance", F.struct("epoch", "end")).alias("owner"),
        F.max("epoch").alias("epoch"),
        F.sum("messages").alias("messages"),
        F.sum("work").alias("work"),
    )
    extent = queues.agg(((F.max("end") - F.min("begin")) / 1e6).alias("seconds"))
    everything = Window.partitionBy()  # of some hundred rows
    return (
        owned.join(hottest, "partition")
        .join(waits, "partition", "left")
        .crossJoin(F.broadcast(extent))
        .na.fill(0.0, ["wait_seconds"])
        .select(
            *("partition", "owner", "epoch", "messages", "work", "queues", "wait_seconds", "wait_p95_us"),
            share(F.col("messages"), F.col("seconds")).alias("per_second"),
            _share_of_all("work", everything).alias("share"),
            _share_of_all("wait_seconds", everything).alias("wait_share"),
            F.col("hottest.virtual_host").alias("hottest_host"),
            F.col("hottest.queue").alias("hottest_queue"),
            share(F.col("hottest.queue_work"), F.col("work")).alias("hottest_share"),
        )
    )


def _share_of_all(name: str, everything: WindowSpec) -> Column:
    return share(F.col(name), F.sum(name).over(everything))


def _owners(partitions: DataFrame) -> DataFrame:
    by_owner = partitions.groupBy("owner").agg(F.count("*").alias("partitions"), F.sum("work").alias("work"))
    return by_owner.withColumn("share", _share_of_all("work", Window.partitionBy()))


def _skew(shares: DataFrame, of: str) -> DataFrame:
    """The Gini coefficient: from each one's rank by work."""
    ranked = shares.where("work > 0").withColumn("rank", F.row_number().over(Window.orderBy("work")))
    count = F.count("*")
    gini = 2 * F.sum(F.col("rank") * F.col("work")) / (count * F.sum("work")) - (count + 1) / count
    greatest = F.max("share")
    return ranked.agg(
        F.lit(of).alias("of"),
        count.alias("count"),
        gini.alias("gini"),
        greatest.alias("greatest_share"),
        (greatest * count).alias("times_fair"),
    )


def _suggester(most: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return partial(_suggest, most=most)


def _suggest(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    loads = [Load(**row) for batch in batches for row in batch.to_pylist()]
    everything = sum(load.work for load in loads)
    moves = []
    for move in suggest(loads, most):
        numbers = ",".join(map(str, move.partitions))
        command = f"hopline partitions move {numbers} {move.target}"
        moves.append((command, numbers, move.source, move.target, move.work / everything))
    if moves:
        columns = (pa.array(values) for values in zip(*moves, strict=True))
        yield pa.RecordBatch.from_arrays(list(columns), names=MOVES.schema.names)


JOB = Job(
    "partitions",
    {"partitions": PARTITIONS, "owners": OWNERS, "skew": SKEW, "moves": MOVES},
    transform,
    frozenset({"stages"}),
    {"moves": f"how many partitions are moved at the most: {_MOVES}"},
)
