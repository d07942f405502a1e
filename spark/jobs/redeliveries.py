"""Redeliveries: messages that come again and again, those that no consumer can take, and where dead letters go."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructType, TimestampType

from spark.expressions import messages, percentile
from spark.job import Inputs, Job, Table, column
from spark.journeys import COPIED, MOVED, journeys, kinds, place
from spark.places import names, places
from spark.ranges import Measure

_POISON = 3

_REASONS = ("", "other", "released", "consumer_gone", "not_sent")
_DEATHS = ("", "other", "rejected", "expired", "maxlen", "delivery_limit", MOVED, COPIED)

_OF_COPIES = (
    Measure("placed", kinds("enqueued", "recovered", "held")),  # so that those that only wait are known too
    Measure("attempts", kinds("delivered")),
    Measure("first_at", kinds("delivered"), "min", "time"),
    Measure("last_at", kinds("delivered"), "max", "time"),
    Measure("put_back", kinds("requeued"), "max", "why"),
    *(Measure(name, kinds(name)) for name in ("accepted", "rejected", "expired", "dead_lettered", "moved", "dropped")),
)
_OF_MESSAGES = (
    Measure("origin", kinds("successor"), "max", "queue_left"),
    Measure("death", kinds("successor"), "max", "death"),
)

CHAINS = Table(
    StructType(
        [
            column("virtual_host", StringType(), ""),
            column("queue", StringType(), ""),
            column("attempts", LongType(), "how many times messages were delivered: two or more"),
            column(
                "reason", StringType(), 'why they were put back: released, consumer_gone, not_sent; "": a new owner'
            ),
            column("fate", StringType(), "settled, dead_lettered, moved, rejected, expired, dropped, waiting"),
            column("messages", LongType(), ""),
            column("gap_p50_us", LongType(), "between one attempt and the next, on average"),
        ]
    ),
    ("-attempts", "-messages", "virtual_host", "queue"),
)
SUSPECTS = Table(
    StructType(
        [
            *CHAINS.schema.fields[:2],
            column("first_uid", LongType(), ""),
            column("last_uid", LongType(), "inclusive"),
            *CHAINS.schema.fields[2:5],
            column("first_time", TimestampType(), "of the first attempt"),
            column("last_time", TimestampType(), "of the last attempt"),
        ]
    ),
    ("-attempts", "virtual_host", "queue", "first_uid"),
)
DEAD_LETTERS = Table(
    StructType(
        [
            column("virtual_host", StringType(), ""),
            column("source", StringType(), "queue that they left"),
            column("target", StringType(), "queue that they came to"),
            column("reason", StringType(), "rejected, expired, maxlen, delivery_limit; by hand: moved, copied"),
            column("messages", LongType(), ""),
            column("circle", BooleanType(), "others go from target to source: messages that never end may go around"),
        ]
    ),
    ("-messages", "source", "target"),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """What came more than once, and what went on as dead letters."""
    queues = names(places(inputs.stages)).where("queue != ''").cache()
    segments = journeys(inputs.stages, _OF_COPIES, _OF_MESSAGES, _values()).where("copy")
    least = int(inputs.number("poison", _POISON))
    again = (
        segments.where("attempts > 1")
        .withColumns({"reason": _word(_REASONS, "put_back"), "fate": _fate()})
        .join(F.broadcast(queues), "place")
    )
    return {
        "chains": _chains(again),
        "suspects": again.where((F.col("attempts") >= least) & (F.col("fate") != "settled")).select(
            *("virtual_host", "queue", "attempts", "reason", "fate"),
            F.col("first").alias("first_uid"),
            F.col("last").alias("last_uid"),
            F.timestamp_micros("first_at").alias("first_time"),
            F.timestamp_micros("last_at").alias("last_time"),
        ),
        "dead_letters": _dead_letters(segments, queues),
    }


def _values() -> dict[str, Column]:
    return {
        "why": _code(_REASONS),
        "death": _code(_DEATHS),
        "queue_left": place(),
    }


def _code(words: tuple[str, ...]) -> Column:
    codes = F.create_map(*(F.lit(part) for code, word in enumerate(words) for part in (word, code)))
    return F.coalesce(F.try_element_at(codes, F.col("reason")), F.lit(words.index("other")))


def _word(words: tuple[str, ...], code: str) -> Column:
    return F.coalesce(F.get(F.array(*map(F.lit, words)), F.col(code).cast("int")), F.lit(""))


def _fate() -> Column:
    fate = F.when(F.col("dead_lettered") > 0, "dead_lettered").when(F.col("accepted") > 0, "settled")
    for name in ("moved", "expired", "dropped", "rejected"):
        fate = fate.when(F.col(name) > 0, name)
    return fate.otherwise("waiting")


def _chains(again: DataFrame) -> DataFrame:
    gap = (F.col("last_at") - F.col("first_at")) / (F.col("attempts") - 1)
    return again.groupBy("virtual_host", "queue", "attempts", "reason", "fate").agg(
        F.sum(messages()).alias("messages"), percentile(gap, 0.5).alias("gap_p50_us")
    )


def _is_death() -> Column:
    """What is moved in a circle by hand does not go around by itself."""
    return ~F.col("death").isin(_DEATHS.index(MOVED), _DEATHS.index(COPIED))


def _dead_letters(segments: DataFrame, queues: DataFrame) -> DataFrame:
    """From queue to queue; the exchange between them is in the graph of dependencies."""
    went = segments.where("origin is not null").groupBy("origin", "place", "death").agg(
        F.sum(messages()).alias("messages")
    )  # fmt: skip
    back = went.where(_is_death()).select(
        F.col("place").alias("origin"), F.col("origin").alias("place"), F.lit(True).alias("circle")
    )
    sources = queues.select(F.col("queue").alias("source"), F.col("place").alias("origin"))
    targets = queues.select("virtual_host", F.col("queue").alias("target"), "place")
    return (
        went.join(back.distinct(), ["origin", "place"], "left")
        .withColumns({"circle": F.coalesce("circle", F.lit(False)) & _is_death(), "reason": _word(_DEATHS, "death")})
        .join(sources, "origin")
        .join(targets, "place")
    )


JOB = Job(
    "redeliveries",
    {"chains": CHAINS, "suspects": SUSPECTS, "dead_letters": DEAD_LETTERS},
    transform,
    frozenset({"stages"}),
    {"poison": f"attempts that make a message suspect that was never settled: {_POISON}"},
)
