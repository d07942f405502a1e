"""Follows a ledger: after each batch of its files the audit and the latencies up to then are written anew."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from spark.histogram import merged
from spark.hops import HOPS
from spark.job import Job
from spark.jobs import audit, latency
from spark.journeys import KINDS, in_buckets, told
from spark.ledger.files import place
from spark.ledger.read import read_table
from spark.output import write_summary, write_tables
from spark.places import KEYS, names, places, record
from spark.schema import STAGES
from spark.stream.cutting import GOING_ON, OVER, ROW, TIME, Horizon, cut_stream
from spark.stream.state import State

_FEWEST_PARTITIONS = 2
_FILES_OF_PARTITION = 4

_ROW = StructType([StructField(name, LongType()) for name in ("place", "what", "time", "first", "last")])
_TIMES = StructType(
    [
        StructField("place", LongType()),
        StructField("partition", LongType()),
        StructField("hop", StringType()),
        StructField("bucket", LongType()),
        *(StructField(name, LongType()) for name in ("messages", "total_us", "max_us")),
    ]
)
_PLACES = StructType(
    [
        *(StructField(name, StringType()) for name in ("virtual_host", "queue")),
        StructField("partition", IntegerType()),
        StructField("instance", StringType()),
        *(StructField(name, LongType()) for name in ("epoch", "first_time", "last_time")),
    ]
)


@dataclass(frozen=True, slots=True)
class Following:
    """How a stream goes about it; times in seconds."""

    ledger: str
    out: str
    checkpoint: str
    every: float = 5.0  # between batches
    late: float = 10.0  # rows may come so much after others of their time
    keep: float = 3600.0  # a journey of which nothing was heard for so long is counted as what it is
    grace: float = audit.GRACE_SECONDS  # what was heard of in the last seconds is not called lost
    files: int = 200  # in a batch, at most


def follow(spark: SparkSession, following: Following, *, once: bool = False) -> StreamingQuery:
    """Starts to follow; `once` ends it when all files of now are read. Raises nothing: the query tells of failure.

    Only files of the running hours are read: those that services merged afterwards have nothing new.
    """
    folder = place(following.ledger)
    stages = (
        spark.readStream.schema(STAGES)
        .option("maxFilesPerTrigger", following.files)
        .option("pathGlobFilter", "part-*.parquet")
        .option("recursiveFileLookup", "true")
        .parquet(folder.uri(f"{folder.path.rstrip('/')}/stages"))
    )
    writer = stages.writeStream.foreachBatch(_Batches(spark, following)).option(
        "checkpointLocation", following.checkpoint
    )
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{following.every} seconds")
    return writer.start()


@dataclass(frozen=True, slots=True)
class _Batches:
    spark: SparkSession
    following: Following

    def __call__(self, stages: DataFrame, number: int) -> None:
        started = time.monotonic()
        batch = _Batch(self.spark, self.following, State(self.spark, self.following.checkpoint), number)
        batch.run(stages)
        self.spark.catalog.clearCache()
        batch.state.forget(number)
        write_summary(_STREAM, batch.summary(time.monotonic() - started), self.following.out)


@dataclass(slots=True)
class _Batch:
    spark: SparkSession
    following: Following
    state: State
    number: int
    record_end: int = 0

    def run(self, stages: DataFrame) -> None:
        self._fit_shuffles(stages)
        known = self._known(places(stages))
        journeys = cut_stream(self._rows(stages), self._horizon(known)).persist()
        self.state.write_large("rows", self.number, journeys.where(F.col("sort") == ROW).select(*_ROW.names))
        self._latency(journeys.where(F.col("sort") == TIME), known)
        self._audit(journeys, known)

    def _fit_shuffles(self, stages: DataFrame) -> None:
        """Spark does not put small partitions of a stream together, and each takes as long to begin as some to do."""
        partitions = max(_FEWEST_PARTITIONS, len(stages.inputFiles()) // _FILES_OF_PARTITION)
        for session in (self.spark, stages.sparkSession):
            session.conf.set("spark.sql.shuffle.partitions", str(partitions))

    def summary(self, seconds: float) -> dict[str, Any]:
        """What the console shows of the stream itself."""
        end = datetime.fromtimestamp(self.record_end / 1e6, UTC)
        age = (datetime.now(UTC) - end).total_seconds()
        return {"batch": self.number, "record_end": end, "age_seconds": round(age, 3), "seconds": round(seconds, 3)}

    def _known(self, seen: DataFrame) -> DataFrame:
        before = self.state.read("places", self.number - 1, _PLACES)
        both = before.unionByName(seen.select(*_PLACES.names)).coalesce(1).groupBy(*KEYS)
        known = both.agg(F.min("first_time").alias("first_time"), F.max("last_time").alias("last_time"))
        return self.state.write("places", self.number, known).cache()

    def _horizon(self, known: DataFrame) -> Horizon:
        ((end,),) = known.agg(F.coalesce(F.max("last_time"), F.lit(0))).collect()
        self.record_end = int(end)
        late, keep = (int(seconds * 1e6) for seconds in (self.following.late, self.following.keep))
        return Horizon(self.record_end - late, self.record_end - keep)

    def _rows(self, stages: DataFrame) -> DataFrame:
        before = self.state.read("rows", self.number - 1, _ROW)
        return in_buckets(told(stages, set(KINDS), {}).select(*_ROW.names).unionByName(before))

    def _latency(self, times: DataFrame, known: DataFrame) -> None:
        named = F.get(F.array(*(F.lit(hop.name) for hop in HOPS)), F.col("hop").cast("int"))
        fresh = times.withColumn("hop", named).select(*_TIMES.names)
        before = self.state.read("times", self.number - 1, _TIMES)
        both = merged(before.unionByName(fresh).coalesce(1), latency.KEYS).select(*_TIMES.names)
        so_far = self.state.write("times", self.number, both).cache()
        write_tables(self.spark, latency.JOB, latency.summaries(so_far, names(known)), self.following.out)

    def _audit(self, journeys: DataFrame, known: DataFrame) -> None:
        gaps = read_table(self.spark, self.following.ledger, "gaps").table
        extent = record(known, gaps)
        segments = journeys.where(F.col("sort").isin(OVER, GOING_ON)).withColumn("copy", F.col("copy") != 0)
        judged = audit.judge(segments, known, gaps, extent, self.following.grace)
        accounts = audit.account(judged, names(known), "sort").coalesce(1).cache()
        over, going_on = (accounts.where(F.col("sort") == sort).drop("sort") for sort in (OVER, GOING_ON))
        before = self.state.read("accounts", self.number - 1, over.schema)
        both = audit.added(before.unionByName(over).coalesce(1))
        so_far = self.state.write("accounts", self.number, both).cache()
        everything = so_far.unionByName(going_on).coalesce(1)
        write_tables(self.spark, audit.JOB, audit.tables(everything, gaps, extent), self.following.out)


_STREAM = Job("stream", {}, lambda _: {}, frozenset({"stages", "gaps"}))
