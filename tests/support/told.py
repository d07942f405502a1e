"""Small ledgers made by hand, and what is true of messages one by one: the slow and plain way, for comparison."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from spark.job import Inputs, Job
from spark.schema import GAPS, IDS, STAGES

START = datetime(2026, 1, 31, 12, tzinfo=UTC)

_GATEWAY = {"received", "routed", "returned", "confirmed", "refused", "sent", "rolled_back"}
_DEFAULTS: dict[str, Any] = {
    field.name: "" if field.dataType.typeName() == "string" else 0 for field in STAGES
} | {"virtual_host": "/", "partition": -1, "successors": []}  # fmt: skip


class Ledger:
    """Rows of stages and gaps, as services would tell them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.gaps: list[dict[str, Any]] = []
        self._told: defaultdict[str, int] = defaultdict(int)

    def tell(self, stage: str, seconds: float, first: int, last: int | None = None, **fields: Any) -> None:
        """A row of `stage` so many seconds after START."""
        last = first if last is None else last
        service = fields.get("service", "gateway" if stage in _GATEWAY else "queue")
        instance = fields.get("instance", f"{service}-1")
        self._told[instance] += 1
        self.rows.append(
            _DEFAULTS
            | {"time": START + timedelta(seconds=seconds), "stage": stage, "service": service, "instance": instance}
            | {"row": self._told[instance], "count": last - first + 1, "first_uid": first, "last_uid": last}
            | {"uids": [(first, last)]}
            | fields
        )

    def journey(self, first: int, last: int, seconds: float = 0, **fields: Any) -> None:
        """All that is told of messages that are published, delivered and accepted, 100 ms a step."""
        of_queue = {"queue": "q", "partition": 1} | {
            name: fields[name] for name in ("virtual_host", "queue", "partition") if name in fields
        }
        told_by = {"epoch": fields.get("epoch", 1), "instance": fields.get("owner", "queue-1")}
        published = {
            "exchange": fields.get("exchange", "x"), "routing_key": fields.get("routing_key", "k"),
            "client": fields.get("producer", "producer"), "virtual_host": fields.get("virtual_host", "/"),
        }  # fmt: skip
        consumer = {"client": fields.get("consumer", "consumer"), "connection": "c", "consumer": "tag"}
        waits, works = fields.get("waits", 0.1), fields.get("works", 0.1)
        self.tell("received", seconds, first, last, **published, bytes=100 * (last - first + 1))
        self.tell("routed", seconds, first, last, **published | of_queue)
        self.tell("enqueued", seconds + 0.1, first, last, **of_queue, **told_by)
        self.tell("confirmed", seconds + 0.2, first, last, **published)
        delivered = seconds + 0.1 + waits
        self.tell("delivered", delivered, first, last, **of_queue, **told_by, attempt=1)
        self.tell("sent", delivered + 0.01, first, last, **of_queue, **consumer)
        self.tell("settled", delivered + works, first, last, **of_queue, **told_by, outcome="accepted")

    def inputs(self, spark: SparkSession, **options: str) -> Inputs:
        stages = spark.createDataFrame(self.rows, STAGES)
        return Inputs(stages, spark.createDataFrame(self.gaps, GAPS), spark.createDataFrame([], IDS), options)


def results(job: Job, inputs: Inputs) -> dict[str, list[dict[str, Any]]]:
    """The rows of all tables, which must be as the job says."""
    tables = job.transform(inputs)
    assert tables.keys() == job.outputs.keys()
    return {name: _rows(table.select(*job.outputs[name].schema.names)) for name, table in tables.items()}


def _rows(table: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in table.collect()]


def read_stages(folder: Path) -> list[dict[str, Any]]:
    """All rows of a filed ledger."""
    return [
        row for file in sorted(folder.rglob("stages/**/*.parquet")) for row in pq.ParquetFile(file).read().to_pylist()
    ]


def uids(row: dict[str, Any]) -> list[int]:
    """Each message of a row."""
    return [uid for one in row["uids"] for uid in range(one["first"], one["last"] + 1)]
