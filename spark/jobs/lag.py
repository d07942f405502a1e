"""Lag: queues that get more than they give, how long messages wait there, and which consumers are slow."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructType, TimestampType

from spark.expressions import ENDS, elapsed, identity, messages, percentile, share, total
from spark.job import Inputs, Job, Table, column
from spark.journeys import journeys, kinds, place
from spark.places import all_terms, places, table_of
from spark.ranges import Measure

_WINDOW_SECONDS = 60
_SLOW = 3.0
_FEWEST = 10  # messages, without which nothing is said of a consumer: of two, one may be late by chance

_OF_COPIES = (
    Measure("consumer_id", kinds("sent"), "max", "consumer"),
    Measure("enqueued_at", kinds("enqueued", "recovered", "held"), "min", "time"),
    Measure("delivered_at", kinds("delivered"), "min", "time"),
    Measure("last_delivered_at", kinds("delivered"), "max", "time"),
    Measure("put_back_at", kinds("requeued", "recovered"), "max", "time"),
    Measure("sent_at", kinds("sent"), "max", "time"),
    Measure("settled_at", kinds("accepted", "rejected"), "max", "time"),
    Measure("ended_at", kinds(*(end for end in ENDS if end != "let_go")), "min", "time"),
    Measure("let_go_epoch", kinds("let_go"), "max", "epoch"),
    Measure("let_go_at", kinds("let_go"), "max", "time"),
    Measure("partition", kinds("enqueued", "recovered", "held"), "max", "partition"),
    Measure("epoch", kinds("enqueued", "recovered", "held", "delivered"), "max", "epoch"),
)

QUEUES = Table(
    StructType(
        [
            column("virtual_host", StringType(), ""),
            column("queue", StringType(), ""),
            column("enqueued", LongType(), "messages, with those that a new owner found"),
            column("ended", LongType(), "settled, expired, dropped, dead-lettered, or gone with its owner"),
            column("gone", LongType(), "of these, what an owner did not find that took the queue over"),
            column("backlog", LongType(), "at the end: what came and did not end, in this record"),
            column("greatest_backlog", LongType(), "at the end of any window"),
            column("growth_per_second", DoubleType(), "messages: slope of the backlog over all windows"),
            column("wait_p50_us", LongType(), "enqueued to first delivered"),
            column("wait_p95_us", LongType(), ""),
            column("wait_max_us", LongType(), ""),
            column("undelivered", LongType(), "never delivered, and still there"),
            column("oldest", TimestampType(), "when the oldest of these came"),
        ]
    ),
    ("-growth_per_second", "-backlog", "virtual_host", "queue"),
)
BACKLOG = Table(
    StructType(
        [
            *QUEUES.schema.fields[:2],
            column("time", TimestampType(), "a window begins"),
            column("enqueued", LongType(), "in the window"),
            column("ended", LongType(), "in the window"),
            column("backlog", LongType(), "at its end"),
        ]
    ),
    ("time", "-backlog", "virtual_host", "queue"),
    console_rows=5000,
)
CONSUMERS = Table(
    StructType(
        [
            *QUEUES.schema.fields[:2],
            column("client", StringType(), "application"),
            column("connection", StringType(), ""),
            column("consumer", StringType(), "tag"),
            column("messages", LongType(), "settled by it"),
            column("per_second", DoubleType(), "settled, while it had any"),
            column("took_p50_us", LongType(), "sent to settled"),
            column("took_p95_us", LongType(), ""),
            column("held", LongType(), "delivered, and neither settled nor put back"),
            column("times_usual", DoubleType(), "took_p50 over the median of the queue's consumers"),
            column("slow", BooleanType(), ""),
            column("why", StringType(), "in a sentence"),
        ]
    ),
    ("-slow", "-held", "-took_p95_us", "queue", "consumer"),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """Queues that pile up, and the consumers that may be the cause."""
    seconds = int(inputs.number("window", _WINDOW_SECONDS, 1))
    segments = _segments(inputs.stages)
    known = _names(inputs.stages).cache()
    backlog = _backlog(segments, seconds).cache()
    growth = _growth(backlog).cache()
    queues = known.select("place", "virtual_host", "queue").distinct()
    return {
        "queues": growth.join(_waits(segments), "place", "left").join(queues, "place"),
        "backlog": backlog.join(queues, "place"),
        "consumers": _consumers(segments, known, growth, inputs.number("slow", _SLOW)),
    }


def _segments(stages: DataFrame) -> DataFrame:
    """Copies; what the next owner did not have has ended when that came, and what an owner let go of with its
    partition when it said so, unless the next one has it: it was sent again, and the former one may tell of it late.
    """
    segments = journeys(stages, _OF_COPIES, (), {"consumer": identity("connection", "consumer", "client")})
    owners = table_of(all_terms(places(stages), ()), stages.sparkSession)
    terms = owners.where("epoch > 0").select("partition", "epoch", "current_epoch", "term_began")
    let_go = F.when(F.col("let_go_epoch") >= F.col("epoch"), F.col("let_go_at"))
    gone = F.col("ended_at").isNull() & F.coalesce(F.col("epoch") < F.col("current_epoch"), F.lit(False))
    return (
        segments.withColumn("ended_at", F.coalesce("ended_at", let_go))
        .join(F.broadcast(terms), ["partition", "epoch"], "left")
        .withColumn("gone", gone)
        .withColumn("ended_at", F.when(gone, F.col("term_began")).otherwise(F.col("ended_at")))
    )


def _names(stages: DataFrame) -> DataFrame:
    """Queues, and consumers that were sent anything: a small table."""
    keys = ("virtual_host", "queue", "client", "connection", "consumer")
    rows = stages.where((F.col("queue") != "") & F.col("stage").isin("enqueued", "sent", "recovered"))
    return (
        rows.select(*keys).distinct()
        .withColumns({"place": place(), "consumer_id": identity("connection", "consumer", "client")})
    )  # fmt: skip


def _backlog(segments: DataFrame, seconds: int) -> DataFrame:
    """Each queue's windows in which anything came or went, counted from nothing."""

    def change(when: str, came: Column, went: Column) -> Column:
        window = F.timestamp_seconds(F.floor(F.col(when) / (seconds * 1_000_000)) * seconds)
        return F.struct(window.alias("time"), came.alias("enqueued"), went.alias("ended"))

    none = F.lit(0).cast("long")
    of_queue = segments.where("enqueued_at is not null")
    changes = of_queue.select(
        "place", F.inline(F.array(change("enqueued_at", messages(), none), change("ended_at", none, messages())))
    )
    counted = (
        changes.where("time is not null").groupBy("place", "time")
        .agg(F.sum("enqueued").alias("enqueued"), F.sum("ended").alias("ended"))
    )  # fmt: skip
    so_far = Window.partitionBy("place").orderBy("time")
    return counted.withColumn("backlog", F.sum(F.col("enqueued") - F.col("ended")).over(so_far))


def _growth(backlog: DataFrame) -> DataFrame:
    slope = F.regr_slope(F.col("backlog").cast("double"), F.unix_seconds("time").cast("double"))
    return backlog.groupBy("place").agg(
        F.sum("enqueued").alias("enqueued"),
        F.sum("ended").alias("ended"),
        F.max_by("backlog", "time").alias("backlog"),
        F.max("backlog").alias("greatest_backlog"),
        F.coalesce(slope, F.lit(0.0)).alias("growth_per_second"),
    )


def _waits(segments: DataFrame) -> DataFrame:
    waited = segments.where("enqueued_at is not null").withColumn("wait", elapsed("enqueued_at", "delivered_at"))
    undelivered = F.col("delivered_at").isNull() & F.col("ended_at").isNull()
    return waited.groupBy("place").agg(
        percentile(F.col("wait"), 0.5).alias("wait_p50_us"),
        percentile(F.col("wait"), 0.95).alias("wait_p95_us"),
        F.max("wait").alias("wait_max_us"),
        total(undelivered, messages()).alias("undelivered"),
        total(F.col("gone"), messages()).alias("gone"),
        F.timestamp_micros(F.min(F.when(undelivered, F.col("enqueued_at")))).alias("oldest"),
    )


def _consumers(segments: DataFrame, known: DataFrame, growth: DataFrame, slow: float) -> DataFrame:
    put_back = F.coalesce(F.col("put_back_at") >= F.col("last_delivered_at"), F.lit(False))
    held = F.col("ended_at").isNull() & ~put_back
    done = F.col("settled_at").isNotNull()
    busy = (F.max("settled_at") - F.min("sent_at")) / 1e6
    worked = segments.where("consumer_id is not null").withColumn("took", elapsed("sent_at", "settled_at"))
    counted = worked.groupBy("place", "consumer_id").agg(
        total(done, messages()).alias("messages"),
        share(total(done, messages()), busy).alias("per_second"),
        percentile(F.col("took"), 0.5).alias("took_p50_us"),
        percentile(F.col("took"), 0.95).alias("took_p95_us"),
        total(held, messages()).alias("held"),
    )
    return _judged(counted, growth, slow).join(known, ["place", "consumer_id"])


def _judged(counted: DataFrame, growth: DataFrame, slow: float) -> DataFrame:
    """Consumers that take much longer than others of the same queue; a consumer alone, if it does not keep up."""
    of_queue = Window.partitionBy("place")
    usual, others = F.median("took_p50_us").over(of_queue), F.count("*").over(of_queue) - 1
    times = F.col("times_usual")
    enough = F.col("messages") >= _FEWEST
    slower = enough & (F.col("others") > 0) & (times >= slow)
    behind = enough & (F.col("others") == 0) & (F.col("growth_per_second") > 0.01 * F.col("per_second"))
    return (
        counted.withColumn("times_usual", F.when(usual > 0, F.col("took_p50_us") / usual))
        .withColumn("others", others)
        .join(growth.select("place", "growth_per_second", "backlog"), "place", "left")
        .withColumn(
            "why",
            F.when(slower, F.format_string("takes %.1f times as long as is usual for this queue", times))
            .when(
                behind,
                F.format_string(
                    "settles %.1f a second, while the queue grows by %.1f a second",
                    F.col("per_second"),
                    F.col("growth_per_second"),
                ),
            )
            .otherwise(""),
        )
        .withColumn("slow", F.col("why") != "")
        .drop("growth_per_second", "backlog")
    )


JOB = Job(
    "lag",
    {"queues": QUEUES, "backlog": BACKLOG, "consumers": CONSUMERS},
    transform,
    frozenset({"stages"}),
    {
        "window": f"seconds that are counted together: {_WINDOW_SECONDS}",
        "slow": f"how many times the usual a slow consumer takes: {_SLOW:g}",
    },
)
