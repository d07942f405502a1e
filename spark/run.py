"""Runs a job: reads what it needs, transforms, writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from spark.errors import NothingToRead
from spark.job import Inputs, Job
from spark.ledger.read import Reading, read_table
from spark.output import write_summary, write_tables
from spark.schema import TABLES

# A shuffle's partitions are this big at most, as input; many small ones are put together while it runs.
_BYTES_OF_PARTITION = 16 << 20
_FEWEST_PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a job's inputs are, and which part of them it looks at."""

    ledger: str
    since: datetime | None = None
    until: datetime | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a run gave: the first rows of each table, and what summary.json says."""

    tables: dict[str, list[Any]]
    summary: dict[str, Any]


def run(spark: SparkSession, job: Job, sources: Sources, out: str) -> Result:
    """Runs `job` on the ledger and writes its tables under `out`. Raises NothingToRead."""
    started = time.monotonic()
    readings = {name: read_table(spark, sources.ledger, name, sources.since, sources.until) for name in TABLES}
    if "stages" in job.reads and not readings["stages"].files:
        raise NothingToRead(_why_nothing(readings["stages"], sources))
    _fit_shuffles(spark, readings["stages"])
    inputs = Inputs(**{name: reading.table for name, reading in readings.items()}, options=sources.options)
    tables = write_tables(spark, job, job.transform(inputs), out)
    summary = _summary(job, sources, readings, time.monotonic() - started)
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
    return f"no files under {sources.ledger}/stages for the time that is asked for"


def _summary(job: Job, sources: Sources, readings: Mapping[str, Reading], seconds: float) -> dict[str, Any]:
    return {
        "job": job.name,
        **asdict(sources),
        "inputs": {
            name: {
                "files": reading.files,
                "rows": reading.rows,
                "bytes": reading.size,
                "refused": [asdict(refused) for refused in reading.refused],
            }
            for name, reading in readings.items()
        },
        "seconds": round(seconds, 3),
    }
