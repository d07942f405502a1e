"""One batch of a stream: new rows, and what the batch before left, as the audit and latencies up to now."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from spark.as_of import AsOf
from spark.histogram import COLUMNS
from spark.hops import HOPS
from spark.job import Job
from spark.jobs import audit, latency
from spark.journeys import KINDS, told
from spark.ledger.files import place
from spark.ledger.read import Reading, read_table
from spark.ledger.soundness import Refused, Sound
from spark.ledger.unread import unread
from spark.output import forget_summary, write_summary, write_tables
from spark.places import KEYS, all_gaps, all_terms, names, places, record
from spark.run import Sources, summary_of
from spark.schema import STAGES
from spark.stream.cutting import GOING_ON, OVER, TIME, Horizon, cut_stream
from spark.stream.damage import Damage
from spark.stream.following import Following
from spark.stream.heads import HEADS, after, heads, hour_of, merged
from spark.stream.heads import KEYS as HEADS_OF
from spark.stream.kept import ROW
from spark.stream.state import State

# While rows come, the last of them is the present: what is newer may be in files that are to be read yet.
LAST_ROW = AsOf(None, "the last row, which a stream follows")

_STREAM = Job("stream", {}, lambda _: {}, frozenset({"stages", "gaps"}))
_JOBS = (latency.JOB, audit.JOB)

OUTPUTS = tuple(job.name for job in (_STREAM, *_JOBS))
"""What it writes to, all the time."""

_BYTES_OF_PARTITION = 64 << 20
_KEPT_ROWS = StructType([StructField("bucket", LongType()), StructField("rows", BinaryType())])
_READ = pa.schema([("table", pa.string()), ("files", pa.int64()), ("rows", pa.int64()), ("size", pa.int64())])
_PLACES = {
    "first_time": "min", **dict.fromkeys(("last_time", "ends_alone", "handed_time"), "max"), "taken_time": "min",
}  # fmt: skip
_REFUSED = pa.schema([("path", pa.string()), ("reason", pa.string())])


@dataclass(slots=True)
class Batch:
    """`number` is that of the stream; `in_flight` are messages that were too young to judge, after `run`."""

    spark: SparkSession
    following: Following
    state: State
    number: int
    damage: Damage
    as_of: AsOf = LAST_ROW
    record_end: int = 0
    in_flight: int = 0
    readings: dict[str, Reading] = field(default_factory=dict)

    def run(self, files: Sequence[Sound], gone: Collection[str] = ()) -> None:
        """Writes the results anew, and leaves what the next batch needs. `gone` are files that mgmt has merged."""
        for job in _JOBS:
            forget_summary(job, self.following.out)
        stages = self._stages(files, gone)
        self.readings = {
            "stages": self._reading(stages, files),
            "gaps": read_table(self.spark, self.following.ledger, "gaps"),
        }
        known = self._known(stages)
        journeys = self._journeys(stages, self._horizon(known), self._partitions(files)).persist()
        queues = self.spark.createDataFrame(known).coalesce(1)
        self._latency(journeys.where(F.col("sort") == TIME), queues)
        self._audit(journeys.where(F.col("sort").isin(OVER, GOING_ON)), queues)

    def summarise(self, seconds: float) -> None:
        """Says what was read so far, with each analysis as after any other run, and how far the stream is itself."""
        out, sources = self.following.out, Sources(self.following.ledger, options={"grace": str(self.following.grace)})
        for job in _JOBS:
            write_summary(job, summary_of(job, sources, self.readings, None, seconds), out)
        end = datetime.fromtimestamp(self.record_end / 1e6, UTC)
        summary = {
            "batch": self.number,
            "record_end": end,
            "age_seconds": round((datetime.now(UTC) - end).total_seconds(), 3),
            "seconds": round(seconds, 3),
            "refused": [asdict(refused) for refused in self.readings["stages"].refused],
        }
        write_summary(_STREAM, summary, out)

    def _stages(self, files: Sequence[Sound], gone: Collection[str]) -> DataFrame:
        """The rows of the files, and of those that are gone as far as they are found elsewhere."""
        folder, reader = place(self.following.ledger), self.spark.read.schema(STAGES)
        before = self.state.read("heads", self.number - 1, HEADS, later=True)
        merged_files = {hour: merged(folder, hour) for hour in sorted({hour_of(path) for path in gone})}
        read = [place(file.path).path for file in files] + [path for some in merged_files.values() for path in some]
        self._together("heads", heads(folder, read), HEADS_OF, {"row": "max"}, later=True)
        stages = reader.parquet(*(file.path for file in files)) if files else self.spark.createDataFrame([], STAGES)
        for hour, paths in merged_files.items():
            if paths:
                stages = stages.unionByName(after(reader.parquet(*map(folder.uri, paths)), hour, before))
        return stages

    def _reading(self, stages: DataFrame, files: Sequence[Sound]) -> Reading:
        """With what all batches have read, and could not read."""
        read = (len(files), sum(file.rows for file in files), sum(file.size for file in files))
        fresh = pa.Table.from_pylist([dict(zip(_READ.names, ("stages", *read), strict=True))], _READ)
        _, *counts = _READ.names
        [so_far] = self._together("read", fresh, ["table"], dict.fromkeys(counts, "sum"), later=True).to_pylist()
        known = pa.Table.from_pylist([asdict(refused) for refused in self.damage.files], _REFUSED)
        refused = self._together("refused", known, _REFUSED.names, {}, later=True).sort_by("path").to_pylist()
        files_so_far, rows, size = (so_far[name] for name in counts)
        return Reading(stages, files_so_far, rows, size, [Refused(**one) for one in refused])

    def _known(self, stages: DataFrame) -> pa.Table:
        seen = places(stages).toArrow()
        return self._together("places", seen, KEYS, _PLACES)

    def _together(
        self, name: str, fresh: pa.Table, keys: Sequence[str], how: Mapping[str, str], *, later: bool = False
    ) -> pa.Table:
        """A small table of what was before and what is new; rows of the same keys are one."""
        before = self.state.read(name, self.number - 1, fresh.schema, later=later)
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

    def _partitions(self, files: Sequence[Sound]) -> int:
        """As many as there are cores, and more for what is more than they can have in memory."""
        size = sum(file.size for file in files) + self.state.size("rows", self.number - 1)
        return max(self.spark.sparkContext.defaultParallelism, size // _BYTES_OF_PARTITION)

    def _latency(self, times: DataFrame, known: DataFrame) -> None:
        named = F.get(F.array(*(F.lit(hop.name) for hop in HOPS)), F.col("hop").cast("int"))
        fresh = times.withColumn("hop", named).select(*latency.KEYS, *COLUMNS).toArrow()
        how = {"messages": "sum", "total_us": "sum", "max_us": "max"}
        so_far = self.spark.createDataFrame(self._together("times", fresh, (*latency.KEYS, "bucket"), how))
        write_tables(latency.JOB, latency.summaries(so_far.coalesce(1), names(known)), self.following.out)

    def _audit(self, segments: DataFrame, known: DataFrame) -> None:
        gaps = self.readings["gaps"].table.coalesce(1)
        found = all_gaps(gaps)
        refused = (one for reading in self.readings.values() for one in reading.refused)
        terms = all_terms(known, found)
        extent = record(known, self.as_of, unread(self.following.ledger, refused))
        segments = segments.withColumn("copy", F.col("copy") != 0)
        evidence = audit.Evidence(known, terms, found, extent)
        judged = audit.judge(segments, evidence, self.following.grace)
        accounts = audit.account(judged, names(known), "sort").coalesce(1).toArrow()
        over, going_on = (accounts.filter(pc.equal(accounts["sort"], sort)).drop("sort") for sort in (OVER, GOING_ON))
        keys = [name for name in audit.ACCOUNT if name != "messages"]
        so_far = self._together("accounts", over, keys, {"messages": "sum"})
        everything = self.spark.createDataFrame(pa.concat_tables([so_far, going_on])).coalesce(1)
        written = write_tables(audit.JOB, audit.tables(everything, gaps, extent), self.following.out)
        self.in_flight = sum(row["in_flight"] for row in written["verdict"])
