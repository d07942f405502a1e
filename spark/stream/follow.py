"""Follows a ledger: after each batch of its files the audit and the latencies up to then are written anew."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from spark.as_of import AsOf
from spark.histogram import COLUMNS
from spark.hops import HOPS
from spark.job import Job
from spark.jobs import audit, latency
from spark.journeys import KINDS, told
from spark.ledger.files import place
from spark.ledger.read import read_table
from spark.output import write_summary, write_tables
from spark.places import KEYS, all_gaps, all_terms, names, places, record
from spark.schema import STAGES
from spark.stream.cutting import GOING_ON, OVER, TIME, Horizon, cut_stream
from spark.stream.damage import Damage
from spark.stream.kept import ROW
from spark.stream.state import State

# All that is shuffled is small, but for rows, and they say themselves into how many parts: planning must not take long.
SETTINGS = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
_BYTES_OF_PARTITION = 64 << 20

_FILE = "path string, modificationTime timestamp, length long, content binary"
_KEPT_ROWS = StructType([StructField("bucket", LongType()), StructField("rows", BinaryType())])


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


def java_options(master: str | None) -> str:
    """Options for Java: on one core, compiling takes the time of those it is done for."""
    return "-XX:TieredStopAtLevel=1" if master in {"local", "local[1]"} else ""


def follow(
    spark: SparkSession, following: Following, *, once: bool = False, say: Callable[[str], None] = lambda _: None
) -> StreamingQuery:
    """Starts to follow; `once` ends it when all files of now are read. Raises nothing: the query tells of failure.
    `say` is told of files that cannot be read: they are passed over.

    Only files of the running hours are read: those that services merged afterwards have nothing new.
    """
    folder = place(following.ledger)
    # A batch of a stream has its columns read whatever is asked of it. So the stream says of which files it is made,
    # and opens none: it would end at the first that is damaged.
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FILE)
        .option("maxFilesPerTrigger", following.files)
        .option("pathGlobFilter", "part-*.parquet")
        .option("recursiveFileLookup", "true")
        .load(folder.uri(f"{folder.path.rstrip('/')}/stages"))
        .select("_metadata.file_path")
    )
    writer = files.writeStream.foreachBatch(_Batches(spark, following, Damage(say))).option(
        "checkpointLocation", following.checkpoint
    )
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{following.every} seconds")
    return writer.start()


@dataclass(frozen=True, slots=True)
class _Batches:
    spark: SparkSession
    following: Following
    damage: Damage

    def __call__(self, files: DataFrame, number: int) -> None:
        started = time.monotonic()
        # Spark names local files with one slash, which other readers of URIs do not understand.
        uris = (row.file_path for row in files.distinct().collect())
        paths = sorted(re.sub("^file:/(?!/)", "file:///", uri) for uri in uris)
        batch = _Batch(self.spark, self.following, State(self.spark, self.following.checkpoint), number)
        self.damage.read(paths, batch.run)
        self.spark.catalog.clearCache()
        batch.state.forget(number)
        summary = {**batch.summary(time.monotonic() - started), "refused": list(map(asdict, self.damage.files))}
        write_summary(_STREAM, summary, self.following.out)


@dataclass(slots=True)
class _Batch:
    spark: SparkSession
    following: Following
    state: State
    number: int
    record_end: int = 0

    def run(self, paths: Sequence[str]) -> None:
        reader = self.spark.read.schema(STAGES)
        stages = reader.parquet(*paths) if paths else self.spark.createDataFrame([], STAGES)
        known = self._known(stages)
        journeys = self._journeys(stages, self._horizon(known), self._partitions(paths)).persist()
        queues = self.spark.createDataFrame(known).coalesce(1)
        self._latency(journeys.where(F.col("sort") == TIME), queues)
        self._audit(journeys.where(F.col("sort").isin(OVER, GOING_ON)), queues)

    def summary(self, seconds: float) -> dict[str, Any]:
        """What the console shows of the stream itself."""
        end = datetime.fromtimestamp(self.record_end / 1e6, UTC)
        age = (datetime.now(UTC) - end).total_seconds()
        return {"batch": self.number, "record_end": end, "age_seconds": round(age, 3), "seconds": round(seconds, 3)}

    def _known(self, stages: DataFrame) -> pa.Table:
        seen = places(stages).toArrow()
        return self._together("places", seen, KEYS, {"first_time": "min", "last_time": "max", "ends_alone": "max"})

    def _together(self, name: str, fresh: pa.Table, keys: Sequence[str], how: Mapping[str, str]) -> pa.Table:
        """A small table of what was before and what is new; rows of the same keys are one."""
        before = self.state.read(name, self.number - 1, fresh.schema)
        both = pa.concat_tables([before, fresh]).group_by(list(keys)).aggregate(list(how.items()))
        together = both.rename_columns([*keys, *how]).select(fresh.column_names).cast(fresh.schema)
        self.state.write(name, self.number, together)
        return together

    def _horizon(self, known: pa.Table) -> Horizon:
        self.record_end = pc.max(known["last_time"]).as_py() or 0
        late, keep = (int(seconds * 1e6) for seconds in (self.following.late, self.following.keep))
        return Horizon(self.record_end - late, self.record_end - keep)

    def _journeys(self, stages: DataFrame, horizon: Horizon, partitions: int) -> DataFrame:
        kept = self.state.read_large("rows", self.number - 1, _KEPT_ROWS)
        keep = self.state.folder("rows", self.number)
        rows = told(stages, set(KINDS), {}).select(*ROW)
        return cut_stream(rows, kept, horizon, partitions, keep)

    def _partitions(self, paths: Sequence[str]) -> int:
        """As many as there are cores, and more for what is more than they can have in memory."""
        system = place(self.following.ledger).system
        fresh = sum(info.size or 0 for info in system.get_file_info([place(path).path for path in paths]))
        size = fresh + self.state.size("rows", self.number - 1)
        return max(self.spark.sparkContext.defaultParallelism, size // _BYTES_OF_PARTITION)

    def _latency(self, times: DataFrame, known: DataFrame) -> None:
        named = F.get(F.array(*(F.lit(hop.name) for hop in HOPS)), F.col("hop").cast("int"))
        fresh = times.withColumn("hop", named).select(*latency.KEYS, *COLUMNS).toArrow()
        how = {"messages": "sum", "total_us": "sum", "max_us": "max"}
        so_far = self.spark.createDataFrame(self._together("times", fresh, (*latency.KEYS, "bucket"), how))
        write_tables(latency.JOB, latency.summaries(so_far.coalesce(1), names(known)), self.following.out)

    def _audit(self, segments: DataFrame, known: DataFrame) -> None:
        gaps = read_table(self.spark, self.following.ledger, "gaps").table.coalesce(1)
        found = all_gaps(gaps)
        terms, extent = all_terms(known, found), record(known, found, _AS_OF)
        segments = segments.withColumn("copy", F.col("copy") != 0)
        judged = audit.judge(segments, known, terms, extent, self.following.grace)
        accounts = audit.account(judged, names(known), "sort").coalesce(1).toArrow()
        over, going_on = (accounts.filter(pc.equal(accounts["sort"], sort)).drop("sort") for sort in (OVER, GOING_ON))
        keys = [name for name in audit.ACCOUNT if name != "messages"]
        so_far = self._together("accounts", over, keys, {"messages": "sum"})
        everything = self.spark.createDataFrame(pa.concat_tables([so_far, going_on])).coalesce(1)
        write_tables(audit.JOB, audit.tables(everything, gaps, extent), self.following.out)


# Batches come with new rows: there is none of an idle broker, which an analysis judges.
_AS_OF = AsOf(None, "the last row, which a stream follows")
_STREAM = Job("stream", {}, lambda _: {}, frozenset({"stages", "gaps"}))

OUTPUTS = tuple(job.name for job in (_STREAM, latency.JOB, audit.JOB))
"""What it writes to, all the time."""
