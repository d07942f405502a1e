"""Anomalies: windows of an edge that are unlike those before them, each explained in a sentence.

An edge is a publisher and an exchange, an exchange and a queue, a queue and a consumer application, or a queue alone;
each has a few numbers for every window: messages, errors, waiting time. The baseline is the median of the windows just
before; `spark.jobs.oddity` says how far from it is too far, docs/anomalies.md why.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructType, TimestampType

from spark.expressions import elapsed, messages, percentile
from spark.job import Inputs, Job, Table, column
from spark.jobs.anomaly_sentences import sentence
from spark.jobs.oddity import Bounds, with_oddity
from spark.journeys import MOVED, journeys, kinds, place
from spark.ranges import Measure

_WINDOW_SECONDS = 60
_HISTORY = 30
_LEAST_HISTORY = 8
_THRESHOLD = 6.0

_LEAST = {"messages": 10.0, "errors": 10.0, "wait": 10_000.0}  # differences below are never worth a word
_WAITED = 20  # messages of a window without which 5 % of them are not one

_EDGE = ("kind", "virtual_host", "source", "target", "metric")

_WAITING = (
    Measure("enqueued_at", kinds("enqueued"), "min", "time"),
    Measure("delivered_at", kinds("delivered"), "min", "time"),
)

ANOMALIES = Table(
    StructType(
        [
            column("time", TimestampType(), "the window begins"),
            column("kind", StringType(), "publish, route, consume, queue"),
            column("virtual_host", StringType(), ""),
            column("source", StringType(), "application, exchange or queue, as the kind says"),
            column("target", StringType(), 'exchange, queue or application; "" for a queue alone'),
            column("metric", StringType(), "messages, errors, wait (µs, 95th percentile), began (the edge is new)"),
            column("value", DoubleType(), "in the window"),
            column("median", DoubleType(), "of the windows before"),
            column("spread", DoubleType(), "of the windows before, to that side, as a standard deviation"),
            column("score", DoubleType(), "how many spreads away, as a difference and as a factor; signed"),
            column("sentence", StringType(), ""),
        ]
    ),
    ("-time", "kind", "source", "target"),
)
EDGES = Table(
    StructType(
        [
            *ANOMALIES.schema.fields[1:6],
            column("windows", LongType(), "looked at"),
            column("judged", LongType(), "that had enough before them"),
            column("median", DoubleType(), "of all windows"),
            column("anomalies", LongType(), ""),
        ]
    ),
    ("-anomalies", *_EDGE),
)


def transform(inputs: Inputs) -> dict[str, DataFrame]:
    """What is odd, and how much was looked at."""
    seconds = int(inputs.number("window", _WINDOW_SECONDS, 1))
    history = int(inputs.number("history", _HISTORY, 1))
    least = int(inputs.number("least", _LEAST_HISTORY))
    counted = _counts(inputs.stages, seconds).cache()
    extent = counted.agg(F.min("window").alias("begin"), F.max("window").alias("end"))
    values = _filled(counted, extent, seconds).unionByName(_waits(inputs.stages, seconds))
    bounds = Bounds(history, least, inputs.number("threshold", _THRESHOLD))
    judged = _judged(values, extent, seconds, bounds).cache()
    named = judged.where("odd").withColumn("metric", F.when(F.col("began"), "began").otherwise(F.col("metric")))
    anomalies = named.withColumns({"time": F.timestamp_seconds("window"), "sentence": sentence(seconds, history)})
    edges = judged.groupBy(*_EDGE).agg(
        F.count("*").alias("windows"),
        F.count_if("known").alias("judged"),
        F.median("value").alias("median"),
        F.count_if("odd").alias("anomalies"),
    )
    return {"anomalies": anomalies, "edges": edges}


def _window(micros: Column, seconds: int) -> Column:
    return (F.floor(micros / (seconds * 1_000_000)) * seconds).cast("long").alias("window")


def _counts(stages: DataFrame, seconds: int) -> DataFrame:
    """Messages and errors of each edge in each window where there were any: edges times windows, whatever the rows."""
    of_gateway = F.col("service") == "gateway"
    failed = F.col("stage").isin("returned", "refused") | ((F.col("stage") == "dropped") & of_gateway)
    # What expired or was rejected is dropped or dead-lettered next, which would count it twice; to move is no error.
    first_word = ~F.col("reason").isin("expired", "rejected", MOVED)
    ended = (
        F.col("stage").isin("requeued", "expired")
        | (F.col("outcome") == "rejected")
        | (F.col("stage").isin("dead_lettered", "dropped") & first_word)
    )
    edge = (
        F.when(F.col("stage") == "received", _edge("publish", "client", "exchange", "messages"))
        .when(failed, _edge("publish", "client", "exchange", "errors"))
        .when(F.col("stage") == "routed", _edge("route", "exchange", "queue", "messages"))
        .when(F.col("stage") == "sent", _edge("consume", "queue", "client", "messages"))
        .when(ended, _edge("queue", "queue", None, "errors"))
    )
    rows = stages.select("virtual_host", "count", _window(F.unix_micros("time"), seconds), edge.alias("edge"))
    return (
        rows.where("edge is not null").select("virtual_host", "edge.*", "window", "count")
        .groupBy(*_EDGE, "window").agg(F.sum("count").cast("double").alias("value"))
    )  # fmt: skip


def _edge(kind: str, source: str, target: str | None, metric: str) -> Column:
    return F.struct(
        F.lit(kind).alias("kind"),
        F.col(source).alias("source"),
        (F.col(target) if target else F.lit("")).alias("target"),
        F.lit(metric).alias("metric"),
    )


def _filled(counted: DataFrame, extent: DataFrame, seconds: int) -> DataFrame:
    """A value for every window since the edge began: 0 where nothing was told. Errors begin with the record."""
    end = F.broadcast(extent)
    edges = counted.groupBy(*_EDGE).agg(F.min("window").alias("since")).crossJoin(end)
    since = F.when(F.col("metric") == "errors", F.col("begin")).otherwise(F.col("since"))
    step = F.lit(seconds).cast("long")
    windows = edges.select(*_EDGE, F.explode(F.sequence(since, F.col("end"), step)).alias("window"))
    return windows.join(counted, [*_EDGE, "window"], "left").na.fill(0.0, ["value"])


def _waits(stages: DataFrame, seconds: int) -> DataFrame:
    queues = stages.where(F.col("stage") == "delivered").select("virtual_host", "queue").distinct()
    segments = journeys(stages, _WAITING, ()).where("delivered_at is not null")
    waited = segments.withColumns({"wait": elapsed("enqueued_at", "delivered_at"), "took": F.col("delivered_at")})
    by_window = waited.groupBy("place", _window(F.col("took"), seconds)).agg(
        percentile(F.col("wait"), 0.95).cast("double").alias("value"), F.sum(messages()).alias("waited")
    )
    enough = (F.col("waited") >= _WAITED) & F.col("value").isNotNull()
    named = by_window.where(enough).join(queues.withColumn("place", place()), "place")
    return named.select(
        F.lit("queue").alias("kind"),
        "virtual_host",
        F.col("queue").alias("source"),
        F.lit("").alias("target"),
        F.lit("wait").alias("metric"),
        "window",
        "value",
    )


def _judged(values: DataFrame, extent: DataFrame, seconds: int, bounds: Bounds) -> DataFrame:
    """Adds the baseline of each window. The last window of the record is not whole, and is left out."""
    of_edge = Window.partitionBy(*_EDGE).orderBy("window")
    first = F.row_number().over(of_edge) == 1
    # What comes seldom may not have come yet, when the record has hardly begun.
    for_long = F.col("window") - F.col("begin") >= bounds.least * seconds
    began = first & (F.col("metric") == "messages") & for_long
    whole = values.crossJoin(F.broadcast(extent)).where(F.col("window") < F.col("end")).withColumn("least", _least())
    return (
        with_oddity(whole, of_edge, bounds)
        .withColumn("began", began)
        .withColumn("odd", F.col("began") | F.col("odd"))
        .drop("begin", "end", "least")
    )


def _least() -> Column:
    least = F.create_map(*(F.lit(part) for pair in _LEAST.items() for part in pair))
    return F.element_at(least, F.col("metric"))


JOB = Job(
    "anomalies",
    {"anomalies": ANOMALIES, "edges": EDGES},
    transform,
    frozenset({"stages"}),
    {
        "window": f"seconds that are counted together: {_WINDOW_SECONDS}",
        "history": f"windows that make a baseline: {_HISTORY}",
        "least": f"windows without which nothing is judged: {_LEAST_HISTORY}",
        "threshold": f"spreads that are too far from the median: {_THRESHOLD:g}",
    },
)
