"""Quality of the record: stages that are missing, orphans, clocks that disagree, and gaps."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructType

from spark.expressions import ENDS, identity, messages, share, total
from spark.job import Inputs, Job, Table, column
from spark.jobs.clocks import CLOCKS, STEPS, clocks, steps
from spark.journeys import journeys, kinds
from spark.places import names, places
from spark.ranges import Measure
from spark.schema import REASONS

_OF_COPIES = (
    *(Measure(name, kinds(name)) for name in ("routed", "enqueued", "delivered", "sent", "requeued")),
    Measure("found", kinds("recovered", "held")),
    Measure("settled", kinds("accepted", "rejected")),
    Measure("ended", kinds(*ENDS)),
    Measure("dropped_reason", kinds("dropped"), "max", "reason"),
    *(Measure(f"{name}_at", kinds(name), "min", "time") for name in ("routed", "enqueued", "delivered", "sent")),
    Measure("router", kinds("routed"), "max", "instance"),
    Measure("owner", kinds("enqueued"), "max", "instance"),
    Measure("deliverer", kinds("delivered"), "max", "instance"),
    Measure("sender", kinds("sent"), "max", "instance"),
)
_OF_MESSAGES = (
    Measure("received", kinds("received")),
    Measure("successor", kinds("successor")),
    Measure("refused", kinds("refused")),
    Measure("received_at", kinds("received"), "min", "time"),
    Measure("receiver", kinds("received"), "max", "instance"),
    Measure("confirmed_at", kinds("confirmed"), "min", "time"),
    Measure("confirmer", kinds("confirmed"), "max", "instance"),
)

MISSING = Table(
    StructType(
        [
            column("virtual_host", StringType(), ""),
            column("queue", StringType(), ""),
            column(
                "stage",
                StringType(),
                "that must have been and is not told: received, routed, enqueued, delivered, sent; "
                "orphan: the record has the end of a journey and nothing of how it came there",
            ),
            column("messages", LongType(), ""),
            column("share", DoubleType(), "of the queue's messages"),
        ]
    ),
    ("-messages", "virtual_host", "queue", "stage"),
)
INSTANCES = Table(
    StructType(
        [
            column("service", StringType(), ""),
            column("instance", StringType(), ""),
            column("rows", LongType(), "numbers of rows that are on record"),
            column("gaps", LongType(), "that were noticed"),
            column("given_up", LongType(), "rows in these gaps, as far as it is known"),
            column(
                "unexplained", LongType(), "numbers that are neither on record nor in a gap, between first and last"
            ),
            column(
                "whole", BooleanType(), "no gap, nothing unexplained, and no file of the record that cannot be read"
            ),
            column("why", StringType(), "reasons of its gaps"),
        ]
    ),
    ("whole", "-given_up", "-unexplained", "instance"),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """How much of what was is on record, and how far its times agree."""
    known = names(places(inputs.stages)).where("queue != ''")
    segments = journeys(inputs.stages, _OF_COPIES, _OF_MESSAGES, {"instance": identity("instance")}).where("copy")
    instances = _instances(inputs.stages, inputs.gaps, all_read=not inputs.unread).cache()
    ids = instances.select("instance", identity("instance").alias("id"))
    taken = steps(segments, ids).cache()
    return {
        "missing": _missing(segments).join(F.broadcast(known), "place"),
        "steps": taken,
        "clocks": clocks(taken),
        "instances": instances,
    }


def _missing(segments: DataFrame) -> DataFrame:
    """What must have happened for what did happen. A message that came before the record began has no beginning."""
    placed, out = F.col("enqueued") + F.col("found") > 0, F.col("delivered") + F.col("sent") + F.col("ended") > 0
    begun = placed | (F.col("routed") > 0)
    absent: dict[str, Column] = {
        "received": (F.col("routed") > 0) & (F.col("received") + F.col("successor") == 0),
        "routed": (F.col("enqueued") > 0) & (F.col("routed") == 0),
        # A full queue drops what it refuses, or makes a dead letter of it, without having had it. One that takes each
        # message once drops what it had before.
        "enqueued": begun & out & ~placed & (F.col("refused") == 0) & ~_is_duplicate(),
        "delivered": begun & (F.col("sent") + F.col("settled") > 0) & (F.col("delivered") == 0),
        # What is put back may not have been sent yet.
        "sent": (F.col("delivered") > 0) & (F.col("settled") > 0) & (F.col("sent") == 0),
        "orphan": ~begun & out,
    }
    counted = segments.groupBy("place").agg(
        F.sum(messages()).alias("all"), *(total(which, messages()).alias(name) for name, which in absent.items())
    )
    stages = F.array(*(F.struct(F.lit(name).alias("stage"), F.col(name).alias("messages")) for name in absent))
    told = counted.select("place", "all", F.inline(stages)).where("messages > 0")
    return told.withColumn("share", share(F.col("messages"), F.col("all")))


def _is_duplicate() -> Column:
    return F.coalesce(F.col("dropped_reason") == REASONS.index("duplicate"), F.lit(False))


def _instances(stages: DataFrame, gaps: DataFrame, *, all_read: bool) -> DataFrame:
    missing = gaps.groupBy("instance").agg(
        F.count("*").alias("gaps"),
        F.sum(F.greatest("count", F.lit(0))).alias("given_up"),
        F.first("service").alias("gap_service"),
        F.array_join(F.sort_array(F.collect_set("reason")), ", ").alias("why"),
    )
    joined = _rows(stages).join(missing, "instance", "full")
    holes = F.col("last_row") - F.col("first_row") + 1 - F.col("rows") - F.col("given_up")
    return (
        joined.na.fill(0, ["rows", "gaps", "given_up", "first_row"])
        .na.fill({"last_row": -1, "why": ""})
        .withColumn("unexplained", F.greatest(holes, F.lit(0)))
        .withColumn("whole", (F.col("gaps") == 0) & (F.col("unexplained") == 0) & F.lit(all_read))
        .withColumn("service", F.coalesce("service", "gap_service"))
    )


def _rows(stages: DataFrame) -> DataFrame:
    """How many different row numbers each instance told. Bitmaps of them are small, and made where the rows are."""
    of_bitmap = F.bitmap_bucket_number("row").alias("bitmap")
    bits = stages.groupBy("service", "instance", of_bitmap).agg(
        F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position("row"))).alias("rows"),
        F.min("row").alias("first_row"),
        F.max("row").alias("last_row"),
    )
    return bits.groupBy("instance").agg(
        F.first("service").alias("service"),
        F.sum("rows").alias("rows"),
        F.min("first_row").alias("first_row"),
        F.max("last_row").alias("last_row"),
    )


JOB = Job(
    "quality",
    {"missing": MISSING, "steps": STEPS, "clocks": CLOCKS, "instances": INSTANCES},
    transform,
    frozenset({"stages", "gaps"}),
)
