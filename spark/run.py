"""Runs a job: reads what it needs, transforms, writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.alone import alone
from spark.as_of import is_live
from spark.checks import nothing_for_the_time, require_options
from spark.errors import NothingToRead
from spark.failure import told_in_a_line
from spark.job import Inputs, Job
from spark.ledger.damaged import MOST_CHANGES, damaged_files, is_gone
from spark.ledger.read import Reading, read_table
from spark.ledger.unread import unread
from spark.output import forget_summary, write_summary, write_tables
from spark.schema import TABLES
from spark.traces.read import SpansReading, read_spans

# A shuffle's partitions are this big at most, as input; many small ones are put together while it runs.
_BYTES_OF_PARTITION = 16 << 20
_FEWEST_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a job's inputs are, and which part of them it looks at."""

    ledger: str
    since: datetime | None = None
    until: datetime | None = None
    spans: tuple[str, ...] = ()  # folders
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a run gave: the first rows of each table, and what summary.json says."""

    tables: dict[str, list[Any]]
    summary: dict[str, Any]


def run(spark: SparkSession, job: Job, sources: Sources, out: str) -> Result:
    """Runs `job` on the ledger, or on spans, and writes its tables under `out`. Raises AnalysisError."""
    require_options(job, sources)
    damaged: dict[str, str] = {}
    gone = 0
    with alone(out, job.name), told_in_a_line(out):
        while True:
            try:
                return _run_once(spark, job, sources, out, damaged)
            except (Py4JError, PySparkException) as error:
                text = str(error)
                if is_gone(text) and gone < MOST_CHANGES:
                    # mgmt merges the files of an hour: rows of listed files are in a file of another name then.
                    gone += 1
                    continue
                found = damaged_files(text, sources.ledger, sources.since, sources.until)
                if found.keys() <= damaged.keys():
                    raise
                damaged.update(found)


def _run_once(spark: SparkSession, job: Job, sources: Sources, out: str, damaged: Mapping[str, str]) -> Result:
    try:
        return _run(spark, job, sources, out, damaged)
    finally:
        # What a job kept for its own tables: Spark would give it to the next that asks for files of the same names.
        spark.catalog.clearCache()


def _run(spark: SparkSession, job: Job, sources: Sources, out: str, damaged: Mapping[str, str]) -> Result:
    started = time.monotonic()
    readings = {name: read_table(spark, sources.ledger, name, sources.since, sources.until, damaged) for name in TABLES}
    if "stages" in job.reads and not readings["stages"].files:
        raise NothingToRead(_why_nothing(readings["stages"], sources))
    _fit_shuffles(spark, readings["stages"])
    spans = read_spans(spark, sources.spans) if "spans" in job.reads else None
    if spans is not None and not spans.files:
        raise NothingToRead(f"no spans in {', '.join(sources.spans) or 'no folder: say --spans'}")
    ledger = {name: reading.table for name, reading in readings.items()}
    ledger["gaps"] = ledger["gaps"].coalesce(1)  # few, and joined with other tables that are small (see spark.places)
    live = sources.until is None and is_live(sources.ledger, datetime.now(UTC))
    refused = [one for name in ("stages", "gaps") for one in readings[name].refused]
    inputs = Inputs(
        **ledger,
        options=sources.options,
        traces=spans.table if spans else None,
        live=live,
        unread=unread(sources.ledger, refused),
    )
    transformed = job.transform(inputs)
    forget_summary(job, out)
    tables = write_tables(job, transformed, out)
    summary = summary_of(job, sources, readings, spans, time.monotonic() - started)
    write_summary(job, summary, out)
    return Result(tables, summary)


def _fit_shuffles(spark: SparkSession, stages: Reading) -> None:
    cores = spark.sparkContext.defaultParallelism
    partitions = max(_FEWEST_PARTITIONS, 2 * cores, stages.size // _BYTES_OF_PARTITION)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def _why_nothing(stages: Reading, sources: Sources) -> str:
    if stages.refused:
        first = stages.refused[0]
        return f"none of {len(stages.refused)} files can be read; {first.path}: {first.reason}"
    return nothing_for_the_time(sources)


def summary_of(
    job: Job, sources: Sources, readings: Mapping[str, Reading], spans: SpansReading | None, seconds: float
) -> dict[str, Any]:
    """What summary.json says of a run that took so long: what was to be read, what was, and what could not be."""
    read: dict[str, Any] = {
        name: {"files": reading.files, "rows": reading.rows, "bytes": reading.size, **_refused(reading)}
        for name, reading in readings.items()
    }
    if spans is not None:
        lines = {"lines": spans.lines, "bad_lines": spans.bad_lines}
        read["spans"] = {"files": spans.files, "rows": spans.spans, **lines, **_refused(spans)}
    return {"job": job.name, **asdict(sources), "inputs": read, "seconds": round(seconds, 3)}


def _refused(reading: Reading | SpansReading) -> dict[str, Any]:
    return {"refused": [asdict(refused) for refused in reading.refused]}
