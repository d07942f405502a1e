from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.jobs.anomalies import JOB
from spark.registry import job
from spark.run import Sources, run
from tests.support.told import START, Ledger, results

MINUTES = 20


def traffic() -> Ledger:
    """Twenty minutes in which one application publishes about a hundred messages a minute."""
    ledger = Ledger()
    for minute in range(MINUTES):
        size = 100 + minute % 3
        if minute == 15:
            size = 900
        if minute != 12:
            waits = 3.0 if minute == 17 else 0.1
            ledger.journey(minute * 1000, minute * 1000 + size - 1, 60 * minute, producer="shop", waits=waits)
    return ledger


def test_odd_minutes(spark: SparkSession) -> None:
    """A burst, a silence and a slow minute are found on every edge they are on, and nothing else is odd."""
    found = results(JOB, traffic().inputs(spark))["anomalies"]
    odd = {
        (row["kind"], row["metric"], round((row["time"].timestamp() - START.timestamp()) / 60)): row["sentence"]
        for row in found
    }
    flows = {(kind, "messages", minute) for kind in ("publish", "route", "consume") for minute in (12, 15)}
    assert odd.keys() == flows | {("queue", "wait", 17)}
    assert odd["publish", "messages", 15].startswith(
        "Application shop to exchange x carried 900 messages in a minute; usually about 101 (median of the 30 windows"
    )
    assert odd["route", "messages", 12].startswith("Exchange x to queue q was silent for a minute; usually about 101")
    assert odd["queue", "wait", 17].startswith("Queue q kept 5 % of its messages waiting for 3,000")


def test_what_is_new(spark: SparkSession) -> None:
    """An edge that was not there when the record began is named when it begins, and errors out of the blue are odd."""
    ledger = traffic()
    for minute in range(16, MINUTES):
        ledger.journey(500_000 + 10 * minute, 500_005 + 10 * minute, 60 * minute, producer="stranger")
    ledger.tell("returned", 60 * 18, 18_000, 18_049, client="shop", exchange="x")
    found = results(JOB, ledger.inputs(spark))["anomalies"]
    (new,) = [row for row in found if row["metric"] == "began"]
    assert new["sentence"] == "Application stranger to exchange x began with 6 messages: it was not there before."
    (errors,) = [row for row in found if row["metric"] == "errors"]
    assert "had 50 failed messages in a minute; usually about 0 " in errors["sentence"]


def test_what_comes_seldom(spark: SparkSession) -> None:
    """An edge that first appears when the record has hardly begun is not new; a rejected message failed once."""
    ledger = traffic()
    for minute in range(3, MINUTES, 3):
        first = 500_000 + 10 * minute
        ledger.tell("received", 60 * minute, first, client="seldom", exchange="x")
        place = {"queue": "q", "partition": 1, "epoch": 1}
        ledger.tell("settled", 60 * minute, first, first + 5, outcome="rejected", **place)
        ledger.tell("dead_lettered", 60 * minute, first, first + 5, reason="rejected", **place)
    tables = results(JOB, ledger.inputs(spark))
    assert [row for row in tables["anomalies"] if row["metric"] in {"began", "errors"}] == []


def test_steady(spark: SparkSession, tmp_path: Path) -> None:
    """Traffic that is the same all the time, but for chance, has no anomaly in what is published and routed."""
    plan = Plan(rows=20_000, queues=2, losses=0, duplicates=0, rate=1000.0, fan_out=0.0)
    write(plan, str(tmp_path / "ledger"))
    sources = Sources(str(tmp_path / "ledger"), options={"window": "1", "threshold": "8"})
    found = run(spark, job("anomalies"), sources, str(tmp_path / "out")).tables
    assert [row for row in found["anomalies"] if row["kind"] == "route" and row["target"] != "dead-letters"] == []
    assert sum(row["judged"] for row in found["edges"]) > 50
