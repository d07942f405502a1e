from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.jobs.failovers import JOB
from spark.registry import job
from spark.run import Sources, run
from tests.support.told import START, Ledger, read_stages, results


def test_moves(spark: SparkSession) -> None:
    """Deaths and hand-overs are told apart, and the time without an owner counts from its last sign of life."""
    ledger = Ledger()
    ledger.journey(1, 10, partition=1, owner="queue-1", epoch=4)  # its last word is at 0.3 s
    ledger.tell("routed", 1.3, 20, 24, partition=1, queue="q")
    ledger.tell("routed", 1.8, 30, 31, partition=1, queue="q")
    ledger.tell("recovered", 2.3, 1, 3, partition=1, queue="q", epoch=5, instance="queue-2", reason="journal")
    ledger.tell("recovered", 9.0, 1, 3, partition=1, queue="q", epoch=6, instance="queue-1", reason="handed_over")
    ledger.journey(100, 110, partition=2, owner="queue-1")
    ledger.tell("taken_over", 9.5, 0, partition=3, queue="", epoch=2, instance="queue-2", count=0, uids=[])
    ledger.gaps.append({"time": START + timedelta(seconds=32), "service": "queue", "instance": "queue-0",
                        "reason": "silent", "since": START + timedelta(seconds=8.5)})  # fmt: skip
    ledger.journey(200, 201, partition=3, owner="queue-0")
    found = results(JOB, ledger.inputs(spark))
    moves = {row["epoch"]: row for row in found["moves"]}
    lapse, handover, crash = moves[5], moves[6], moves[2]
    assert (lapse["source"], lapse["target"], lapse["how"]) == ("queue-1", "queue-2", "handed_over")
    assert (lapse["silence_us"], lapse["blocked_us"]) == (2_000_000, 1_000_000)
    assert (lapse["waited"], lapse["recovered"]) == (7, 3)
    assert (crash["source"], crash["how"], crash["recovered"]) == ("queue-0", "crash", 0)
    assert crash["silence_us"] == 1_000_000  # since its last sign of life
    assert (handover["how"], handover["silence_us"], handover["waited"]) == ("handed_over", 6_700_000, 0)
    assert handover["blocked_us"] == 0
    partitions = {row["partition"]: row for row in found["partitions"]}
    assert [(row["moves"], row["crashes"], row["waited"]) for row in (partitions[1], partitions[3])] == [
        (2, 0, 7),
        (1, 1, 0),
    ]


def test_an_owner_that_lost_its_lease_and_lives(spark: SparkSession) -> None:
    """Of a partition in which nothing happened it had been silent for long: it counts what it told of any."""
    ledger = Ledger()
    ledger.journey(1, 10, partition=1, owner="queue-1", epoch=4)
    ledger.tell("enqueued", 100.0, 20, partition=2, queue="q", epoch=1, instance="queue-1")
    ledger.tell("taken_over", 103.5, 0, partition=1, queue="", epoch=5, instance="queue-2", count=0, uids=[])
    ledger.tell("enqueued", 110.0, 21, partition=2, queue="q", epoch=1, instance="queue-1")
    [move] = results(JOB, ledger.inputs(spark))["moves"]
    assert (move["how"], move["silence_us"]) == ("lapsed", 3_500_000)


@pytest.mark.parametrize(("live", "how"), [(False, "unknown"), (True, "lapsed")])
def test_idle(spark: SparkSession, live: bool, how: str) -> None:
    """A live record of a broker that is idle since is judged now: an owner that died would have been missed."""
    ledger = Ledger()
    ledger.journey(1, 10, partition=1, owner="queue-1", epoch=4)
    ledger.tell("taken_over", 9.5, 0, partition=1, queue="", epoch=5, instance="queue-2", count=0, uids=[])
    [move] = results(JOB, replace(ledger.inputs(spark), live=live))["moves"]
    assert move["how"] == how


def test_generated(spark: SparkSession, tmp_path: Path) -> None:
    """Each partition that moves in a generated ledger is found, with its silence and how many copies were found."""
    write(Plan(rows=20_000, queues=12, losses=0, duplicates=0), str(tmp_path / "ledger"))
    found = run(spark, job("failovers"), Sources(str(tmp_path / "ledger")), str(tmp_path / "out")).tables
    terms: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in read_stages(tmp_path):
        if row["service"] == "queue":
            terms.setdefault((row["partition"], row["epoch"]), []).append(row)
    expected = {}
    for (partition, epoch), rows in terms.items():
        if earlier := terms.get((partition, epoch - 1)):
            silence = min(row["time"] for row in rows) - max(row["time"] for row in earlier)
            recovered = sum(row["count"] for row in rows if row["stage"] == "recovered")
            expected[partition, epoch] = max(0, round(silence.total_seconds() * 1e6)), recovered
    assert expected
    assert {
        (row["partition"], row["epoch"]): (row["silence_us"], row["recovered"]) for row in found["moves"]
    } == expected
