"""Failovers: how long each partition was without an owner when its lease moved, and which messages had to wait."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructType, TimestampType

from spark.expressions import total
from spark.job import Inputs, Job, Table, column
from spark.moves import CRASH, LAPSED, Lives, Move, Owner, moves
from spark.places import all_gaps
from spark.schema import SILENT

_MOVES = (
    "partition int, epoch long, source string, target string, how string, last_seen long, first_seen long, "
    "recovered long, silence_us long"
)
MOVES = Table(
    StructType(
        [
            column("partition", IntegerType(), ""),
            column("epoch", LongType(), "of the new owner"),
            column("source", StringType(), "queue process that had it before"),
            column("target", StringType(), "that took it"),
            column(
                "how",
                StringType(),
                "handed_over in good order; crash: the owner died; lapsed: it lost its lease, and lives; "
                "unknown: too young to tell",
            ),
            column(
                "last_seen",
                TimestampType(),
                "when the former owner is last known to have had it: its last word on it, or its last sign of life",
            ),
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
            column("crashes", LongType(), "moves because its owner died"),
            column("silence_us", LongType(), "together"),
            column("blocked_us", LongType(), "together"),
            column("waited", LongType(), "copies"),
        ]
    ),
    ("-blocked_us", "-silence_us", "partition"),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """Each change of epoch, with what was published meanwhile."""
    lives = _lives(inputs.stages, inputs.gaps)
    if inputs.live:  # an idle broker tells nothing, and time goes on all the same
        lives = lives._replace(record_end=max(lives.record_end, int(datetime.now(UTC).timestamp() * 1e6)))
    found = _with_last_words(moves(_owners(inputs.stages), lives), inputs.stages)
    rows = [(*move, move.silence) for move in found]
    table = inputs.stages.sparkSession.createDataFrame(rows, _MOVES)
    times = {name: F.timestamp_micros(name) for name in ("last_seen", "first_seen")}
    with_waiting = _with_waiting(table.withColumns(times), inputs.stages).cache()
    partitions = with_waiting.groupBy("partition").agg(
        F.count("*").alias("moves"),
        F.count_if(F.col("how") == CRASH).alias("crashes"),
        *(F.sum(name).alias(name) for name in ("silence_us", "blocked_us", "waited")),
    )
    return {"moves": with_waiting, "partitions": partitions}


def _owners(stages: DataFrame) -> list[Owner]:
    """The owners of each partition, and when they had it: as few rows as there were owners."""
    told = stages.where((F.col("service") == "queue") & (F.col("partition") >= 0) & (F.col("epoch") > 0))
    found, time = F.col("stage") == "recovered", F.unix_micros("time")
    owners = (
        told.withColumn("at", time)
        .groupBy("partition", "epoch")
        .agg(
            F.max("instance"),
            F.min("at"),
            F.max("at"),
            F.max(F.when(F.col("stage") == "handed_over", F.col("at"))),
            F.max(F.col("stage") == "taken_over"),
            total(found, F.col("count")),
            total(found & (F.col("reason") == "handed_over"), F.col("count")),
        )
    )
    return [Owner(*row) for row in owners.collect()]


def _lives(stages: DataFrame, gaps: DataFrame) -> Lives:
    """When queue processes were heard of last, and when those died that ended without a word."""
    last = stages.where(F.col("service") == "queue").groupBy("instance").agg(F.max(F.unix_micros("time")))
    heard = {row[0]: row[1] for row in last.collect()}
    died: dict[str, int] = {}
    for gap in all_gaps(gaps):
        spoke = heard.get(gap.instance, gap.time)
        if gap.reason == SILENT and spoke <= gap.time:
            died[gap.instance] = max(spoke, gap.since or 0)
    return Lives(heard, died, max(heard.values(), default=0))


def _with_last_words(found: Sequence[Move], stages: DataFrame) -> list[Move]:
    """An owner that lost its lease and lives: it had a partition of which there was nothing to tell, for all that is
    known, until the last that it told of any, to a second.
    """
    asked = [(move.partition, move.epoch, move.source, move.first_seen) for move in found if move.how == LAPSED]
    if not asked:
        return list(found)
    at = F.unix_micros("time").alias("at")
    told = stages.where(F.col("service") == "queue").select("instance", at)
    by_second = told.groupBy("instance", F.floor(F.col("at") / 1_000_000)).agg(F.max("at").alias("at"))
    lapsed = stages.sparkSession.createDataFrame(asked, "partition int, epoch long, instance string, first_seen long")
    before = by_second.join(F.broadcast(lapsed), "instance").where("at < first_seen")
    rows = before.groupBy("partition", "epoch").agg(F.max("at")).collect()
    spoke = {(partition, epoch): last for partition, epoch, last in rows}
    return [
        move._replace(last_seen=max(move.last_seen, spoke.get((move.partition, move.epoch), 0)))
        if move.how == LAPSED
        else move
        for move in found
    ]


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


JOB = Job("failovers", {"moves": MOVES, "partitions": PARTITIONS}, transform)
