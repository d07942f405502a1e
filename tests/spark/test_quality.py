from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.jobs.quality import JOB
from spark.registry import job
from spark.run import Sources, run
from spark.terms import Unread
from tests.support.told import START, Ledger, results

AHEAD = 3_000_000


def test_holes(spark: SparkSession) -> None:
    """Of each stage that is missing the messages are counted, an orphan's once; what is whole is not named."""
    ledger = Ledger()
    ledger.journey(1, 100)
    ledger.journey(101, 110)
    ledger.journey(200, 219)
    missing = {("sent", 101): "sent", ("enqueued", 200): "enqueued"}
    ledger.rows = [row for row in ledger.rows if (row["stage"], row["first_uid"]) not in missing]
    ledger.tell("delivered", 0, 300, 304, queue="q", partition=1)
    ledger.tell("settled", 0, 300, 304, queue="q", partition=1, outcome="accepted")
    ledger.tell("received", 0, 400, 401)
    ledger.tell("routed", 0, 400, 401, queue="q", partition=1)
    ledger.tell("dropped", 0.1, 400, queue="q", partition=1, reason="maxlen")
    ledger.tell("dead_lettered", 0.1, 401, queue="q", partition=1, reason="maxlen", successors=[(500, 500)])
    ledger.tell("refused", 0.2, 400, 401, reason="overflow")
    ledger.tell("received", 0, 600, 604)
    ledger.tell("routed", 0, 600, 604, queue="q", partition=1)
    ledger.tell("dropped", 0.1, 600, 604, queue="q", partition=1, reason="duplicate")
    ledger.tell("confirmed", 0.2, 600, 604)
    found = results(JOB, ledger.inputs(spark))
    assert {(row["stage"], row["messages"]) for row in found["missing"]} == {
        ("sent", 15),
        ("enqueued", 20),
        ("orphan", 5),
    }
    unexplained = {row["instance"]: row["unexplained"] for row in found["instances"]}
    assert unexplained == {"gateway-1": 1, "queue-1": 1}


def test_gaps(spark: SparkSession) -> None:
    """Rows that were given up are not unexplained, and an instance of which only a gap is known is named too; none
    is whole beside a file that cannot be read."""
    ledger = Ledger()
    for first in range(0, 100, 10):
        ledger.journey(first, first + 9)
    ledger.rows = [row for row in ledger.rows if row["instance"] != "queue-1" or not 5 <= row["row"] <= 8]
    gap = {"time": START + timedelta(seconds=1), "service": "queue", "instance": "queue-1"}
    ledger.gaps.append(gap | {"first_row": 5, "last_row": 8, "count": 4, "reason": "given_up"})
    ledger.gaps.append(gap | {"instance": "queue-9", "first_row": 1, "last_row": 1, "count": -1, "reason": "silent"})
    instances = {row["instance"]: row for row in results(JOB, ledger.inputs(spark))["instances"]}
    assert instances["gateway-1"]["whole"]
    queue = instances["queue-1"]
    assert (queue["rows"], queue["given_up"], queue["unexplained"], queue["whole"]) == (26, 4, 0, False)
    assert (instances["queue-9"]["gaps"], instances["queue-9"]["why"]) == (1, "silent")
    unread = replace(ledger.inputs(spark), unread=[Unread("stages/a.parquet", 1)])
    assert not any(row["whole"] for row in results(JOB, unread)["instances"])


def test_clocks(spark: SparkSession, tmp_path: Path) -> None:
    """A clock that is put ahead by three seconds is found so, to half a millisecond; others are not."""
    write(Plan(rows=10_000, queues=8, losses=0, duplicates=0, unusual=0.0), str(tmp_path / "ledger"))
    for file in tmp_path.rglob("stages/**/*.parquet"):
        _put_ahead(file, "queue-1")
    found = run(spark, job("quality"), Sources(str(tmp_path / "ledger")), str(tmp_path / "out")).tables
    assert len(found["clocks"]) == 4
    for row in found["clocks"]:
        truth = AHEAD if row["queue"] == "queue-1" else 0
        assert abs(row["offset_us"] - truth) < 500
        assert row["agree"] is False or not truth
    negative = {(row["step"], row["source"]) for row in found["steps"] if row["negative_share"] > 0.9}
    assert ("send", "queue-1") in negative
    assert all("queue-1" in source for _, source in negative)
    assert found["missing"] == []


def test_clocks_and_transactions(spark: SparkSession) -> None:
    """That a gateway hears of a commit before a queue has what is in it is no matter of clocks; where messages come
    back in no other way, nothing is said of them."""
    ledger = Ledger()
    ledger.journey(1, 10)
    for first, owner in ((20, "queue-1"), (30, "queue-2")):
        ledger.tell("received", 1, first)
        ledger.tell("routed", 1, first, queue="q", partition=1)
        ledger.tell("confirmed", 1.1, first)
        ledger.tell("enqueued", 1.3, first, queue="q", partition=1, epoch=1, instance=owner)
    ledger.tell("routed", 2, 40, queue="q", partition=1)
    ledger.tell("enqueued", 2.05, 40, queue="q", partition=1, epoch=1, instance="queue-2")
    found = results(JOB, ledger.inputs(spark))["clocks"]
    told = {row["queue"]: (row["offset_us"], row["uncertain_us"], row["agree"]) for row in found}
    assert told == {"queue-1": (45_000, 55_000, True), "queue-2": (None, None, None)}


def _put_ahead(file: Path, instance: str) -> None:
    table = pq.ParquetFile(file).read()
    late = pc.add(table["time"], pa.scalar(timedelta(microseconds=AHEAD)))
    time = pc.if_else(pc.equal(table["instance"], instance), late, table["time"])
    column = table.schema.get_field_index("time")
    pq.write_table(table.set_column(column, table.schema.field(column), time), file)
