"""Dependencies: of applications, exchanges and queues, by the messages that went through them; and of services."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from spark.expressions import elapsed, identity, messages, percentile, share, told, total
from spark.job import Inputs, Job, Table, column
from spark.journeys import MOVED, journeys, kinds, place
from spark.ranges import Measure

_OF_COPIES = (
    Measure("publisher", kinds("routed"), "max", "publisher"),
    Measure("exchange", kinds("routed"), "max", "exchange"),
    Measure("consumer", kinds("sent"), "max", "consumer"),
    Measure("gateway", kinds("routed"), "max", "instance"),
    Measure("owner", kinds("enqueued"), "max", "instance"),
    Measure("deliverer", kinds("delivered"), "max", "instance"),
    Measure("sender", kinds("sent"), "max", "instance"),
    *(
        Measure(f"{name}_at", kinds(name), "min", "time")
        for name in ("routed", "enqueued", "delivered", "sent", "accepted")
    ),
    Measure("placed", kinds("enqueued", "recovered", "held")),
    Measure("failed", kinds("rejected", "expired", "dead_lettered", "dropped", "let_go")),
    Measure("returned", kinds("requeued")),
)
_OF_MESSAGES = (
    Measure("published", kinds("received"), "max", "publisher"),
    Measure("received_at", kinds("received"), "min", "time"),
    Measure("confirmed_at", kinds("confirmed"), "min", "time"),
)

# Each kind of edge: what it is between, and what its time is between.
_EDGES = {
    "publish": (("published",), ("received_at", "confirmed_at")),
    "route": (("exchange", "place"), ("routed_at", "enqueued_at")),
    "consume": (("place", "consumer"), ("enqueued_at", "sent_at")),
    "enqueue": (("gateway", "owner"), ("routed_at", "enqueued_at")),
    "deliver": (("deliverer", "sender"), ("delivered_at", "sent_at")),
    "journey": (("publisher", "place", "consumer"), ("received_at", "accepted_at")),
}
_ENDS = ("one", "two", "three")

_TIMES = [
    column("p50_us", LongType(), "half of the messages took no longer"),
    column("p95_us", LongType(), "95 % of the messages took no longer"),
]
EDGES = Table(
    StructType(
        [
            column("kind", StringType(), "publish, route, consume, dead_letter"),
            column("virtual_host", StringType(), ""),
            column("source", StringType(), "application, exchange or queue, as the kind says"),
            column("target", StringType(), "exchange, queue or application"),
            column("messages", LongType(), ""),
            column(
                "errors",
                LongType(),
                "publish: returned, refused, dropped for want of a route; route: never enqueued; "
                "consume: put back, rejected, expired, dead-lettered or dropped after they were sent",
            ),
            *_TIMES,  # received to confirmed; routed to enqueued; enqueued to sent
            column("fan_out", DoubleType(), "publish: copies in queues of a message, on average"),
        ]
    ),
    ("-messages", "kind", "source", "target"),
)
PATHS = Table(
    StructType(
        [
            column("virtual_host", StringType(), ""),
            column("producer", StringType(), 'application; "" for dead letters'),
            column("exchange", StringType(), '"" is the default exchange'),
            column("queue", StringType(), ""),
            column("consumer", StringType(), 'application; "": sent to none yet'),
            column("messages", LongType(), ""),
            column("errors", LongType(), "never enqueued, put back, rejected, expired, dead-lettered or dropped"),
            *_TIMES,  # received to accepted
        ]
    ),
    ("-messages", "producer", "queue"),
)
SERVICES = Table(
    StructType(
        [
            column("kind", StringType(), "enqueue (gateway to queue process) or deliver (back to a gateway)"),
            column("source", StringType(), "instance"),
            column("target", StringType(), 'instance; "": the record names none'),
            column("messages", LongType(), ""),
            *_TIMES,  # routed to enqueued; delivered to sent
        ]
    ),
    ("-messages", "source", "target"),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """Both graphs, from one pass over journeys and one over rows."""
    counted = _counted(inputs.stages).cache()
    edges = _of_segments(inputs.stages).cache()
    return {
        "edges": _edges(counted, edges),
        "paths": _paths(counted, edges),
        "services": _services(counted, edges),
    }


def _counted(stages: DataFrame) -> DataFrame:
    """Rows counted by client, exchange, queue, target and instance: a small table."""
    keys = ("virtual_host", "client", "exchange", "queue", "target", "instance")
    rows = stages.where(
        F.col("stage").isin("received", "routed", "returned", "refused", "sent", "enqueued")
        | ((F.col("stage") == "dead_lettered") & (F.col("reason") != MOVED))  # which went to no exchange
        | ((F.col("stage") == "dropped") & (F.col("service") == "gateway"))
    )
    names = ("received", "routed", "sent", "dead_lettered")
    return rows.groupBy(*keys).agg(
        *(told(name).alias(name) for name in names), told("returned", "refused", "dropped").alias("failed")
    )


def _of_segments(stages: DataFrame) -> DataFrame:
    """Each edge that `_EDGES` names, by numbers that stand for names."""
    values = {
        "publisher": identity("virtual_host", "client", "exchange"),
        "exchange": identity("virtual_host", "exchange"),
        "consumer": identity("virtual_host", "client"),
        "instance": identity("instance"),
    }
    segments = journeys(stages, _OF_COPIES, _OF_MESSAGES, values)
    unplaced, failed = (F.col("placed") == 0) & F.col("copy"), F.col("failed") + F.col("returned") > 0
    edges = F.array(*(_struct(kind, keys, elapsed(*between)) for kind, (keys, between) in _EDGES.items()))
    each = segments.select(
        messages().alias("count"), unplaced.alias("unplaced"), failed.alias("failed"), F.inline(edges)
    )
    return each.groupBy("edge", *_ENDS).agg(
        F.sum("count").alias("messages"),
        total(F.col("unplaced"), F.col("count")).alias("unplaced"),
        total(F.col("failed"), F.col("count")).alias("failed"),
        percentile(F.col("took"), 0.5, F.col("count")).alias("p50_us"),
        percentile(F.col("took"), 0.95, F.col("count")).alias("p95_us"),
    )


def _struct(kind: str, keys: tuple[str, ...], took: Column) -> Column:
    ends = [F.col(key) for key in keys] + [F.lit(None).cast("long")] * (len(_ENDS) - len(keys))
    named = (end.alias(name) for end, name in zip(ends, _ENDS, strict=True))
    return F.struct(F.lit(kind).alias("edge"), *named, took.alias("took"))


def _edge(edges: DataFrame, kind: str) -> DataFrame:
    """The edges of one kind, what they are between by its names."""
    keys, _ = _EDGES[kind]
    named = dict(zip(_ENDS, keys, strict=False))
    return edges.where(F.col("edge") == kind).withColumnsRenamed(named).drop("edge", *_ENDS)


def _edges(counted: DataFrame, edges: DataFrame) -> DataFrame:
    publish = (
        counted.groupBy("virtual_host", "client", "exchange")
        .agg(*(F.sum(name).alias(name) for name in ("received", "routed", "failed")))
        .where("received > 0")
        .withColumn("published", identity("virtual_host", "client", "exchange"))
        .join(_edge(edges, "publish").drop("failed", "messages"), "published", "left")
    )
    route = (
        counted.where("routed > 0").groupBy("virtual_host", "exchange", "queue").agg(F.sum("routed").alias("routed"))
        .withColumns({"id": identity("virtual_host", "exchange"), "place": place()})
        .join(_edge(edges, "route").withColumnRenamed("exchange", "id"), ["id", "place"], "left")
    )  # fmt: skip
    consume = (
        counted.where("sent > 0").groupBy("virtual_host", "queue", "client").agg(F.sum("sent").alias("sent"))
        .withColumns({"consumer": identity("virtual_host", "client"), "place": place()})
        .join(_edge(edges, "consume"), ["place", "consumer"], "left")
    )  # fmt: skip
    dead = counted.where("dead_lettered > 0").groupBy("virtual_host", "queue", "target")
    nothing = F.lit(None).cast("double")
    return (
        _named(
            publish, "publish", "client", "exchange", "received", "failed", share(F.col("routed"), F.col("received"))
        )
        .union(_named(route, "route", "exchange", "queue", "routed", "unplaced", nothing))
        .union(_named(consume, "consume", "queue", "client", "sent", "failed", nothing))
        .union(
            dead.agg(F.sum("dead_lettered").alias("messages")).select(
                F.lit("dead_letter"), "virtual_host", "queue", "target", "messages", *map(F.lit, (0, None, None, None))
            )
        )
    )


def _named(
    table: DataFrame, kind: str, source: str, target: str, counted: str, errors: str, fan_out: Column
) -> DataFrame:
    return table.select(
        F.lit(kind).alias("kind"),
        "virtual_host",
        F.col(source).alias("source"),
        F.col(target).alias("target"),
        F.col(counted).alias("messages"),
        F.coalesce(errors, F.lit(0)).alias("errors"),
        "p50_us",
        "p95_us",
        fan_out.alias("fan_out"),
    )


def _paths(counted: DataFrame, edges: DataFrame) -> DataFrame:
    publishers = counted.select("virtual_host", F.col("client").alias("producer"), "exchange").distinct()
    queues = counted.where("queue != ''").select("virtual_host", "queue").distinct()
    consumers = counted.select("virtual_host", F.col("client").alias("consumer_name")).distinct()
    return (
        _edge(edges, "journey")
        .where("publisher is not null")
        .join(publishers.withColumn("publisher", identity("virtual_host", "producer", "exchange")), "publisher")
        .join(queues.select("queue", place().alias("place")), "place")
        .join(
            consumers.select("consumer_name", identity("virtual_host", "consumer_name").alias("consumer")),
            "consumer",
            "left",
        )
        .withColumn("errors", F.col("failed") + F.col("unplaced"))
        .withColumn("consumer", F.coalesce("consumer_name", F.lit("")))
    )


def _services(counted: DataFrame, edges: DataFrame) -> DataFrame:
    names = counted.select("instance").distinct().withColumn("id", identity("instance"))
    sources = names.select(F.col("instance").alias("source"), F.col("id").alias("source_id"))
    targets = names.select(F.coalesce("instance", F.lit("")).alias("target"), F.col("id").alias("target_id"))

    def between(kind: str) -> DataFrame:
        (source, target), _ = _EDGES[kind]
        one = _edge(edges, kind).withColumnsRenamed({source: "source_id", target: "target_id"})
        return one.join(sources, "source_id").join(targets, "target_id", "left").withColumn("kind", F.lit(kind))

    both = between("enqueue").unionByName(between("deliver"))
    return both.withColumn("target", F.coalesce("target", F.lit("")))


JOB = Job(
    "dependencies",
    {"edges": EDGES, "paths": PATHS, "services": SERVICES},
    transform,
    frozenset({"stages"}),
)
