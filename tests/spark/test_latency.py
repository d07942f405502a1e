from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.registry import job
from spark.run import Sources, run
from tests.support.told import Ledger, read_stages, results, uids


def test_hops(spark: SparkSession) -> None:
    """Each hop's latency is the time between its stages, weighed by messages."""
    ledger = Ledger()
    ledger.journey(1, 99, waits=0.2)
    ledger.journey(100, 100, seconds=5, waits=3.0)
    found = results(job("latency"), ledger.inputs(spark))
    hops = {row["hop"]: row for row in found["hops"]}
    assert {(row["virtual_host"], row["queue"], row["partition"]) for row in hops.values()} == {("/", "q", 1)}
    assert {name: hops[name]["messages"] for name in ("enqueue", "confirm", "wait", "end_to_end")} == {
        "enqueue": 100,
        "confirm": 100,
        "wait": 100,
        "end_to_end": 100,
    }
    assert hops["wait"]["max_us"] == 3_000_000
    assert abs(hops["wait"]["p50_us"] / 200_000 - 1) < 0.016
    assert hops["wait"]["mean_us"] == (99 * 200_000 + 3_000_000) // 100
    assert hops["route"]["p99_us"] == 0
    assert "persist" not in hops
    (waits,) = found["waits"]
    assert (waits["messages"], waits["max_us"]) == (100, 3_000_000)


def test_clocks_that_disagree(spark: SparkSession) -> None:
    """A stage that seems to come before the one before it took no time."""
    ledger = Ledger()
    ledger.tell("routed", 1.0, 1, 10, queue="q", partition=1)
    ledger.tell("enqueued", 0.9, 1, 10, queue="q", partition=1, epoch=1)
    (row,) = results(job("latency"), ledger.inputs(spark))["hops"]
    assert (row["hop"], row["p50_us"], row["p99_us"], row["mean_us"]) == ("enqueue", 0, 0, 0)


def test_generated(spark: SparkSession, tmp_path: Path) -> None:
    """Waits in queues are those that reckoning message by message finds."""
    write(Plan(rows=20_000, queues=4, losses=0, duplicates=0), str(tmp_path / "ledger"))
    found = run(spark, job("latency"), Sources(str(tmp_path / "ledger")), str(tmp_path / "out"))
    waits = _waits(read_stages(tmp_path / "ledger"))
    rows = {row["queue"]: row for row in found.tables["waits"]}
    assert rows.keys() == waits.keys()
    for queue, took in waits.items():
        assert rows[queue]["messages"] == len(took)
        assert rows[queue]["max_us"] == max(took)
        for share in (50, 95, 99):
            low, high = np.percentile(took, (share - 0.5, min(share + 0.5, 100)))
            assert low / 1.02 < rows[queue][f"p{share}_us"] < high * 1.02


def _waits(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    times: dict[str, dict[tuple[str, int], float]] = {"enqueued": {}, "delivered": {}}
    for row in rows:
        if row["stage"] in times:
            for uid in uids(row):
                key = (row["queue"], uid)
                time = row["time"].timestamp() * 1e6
                times[row["stage"]][key] = min(time, times[row["stage"]].get(key, time))
    waits = defaultdict(list)
    for key, delivered in times["delivered"].items():
        waits[key[0]].append(round(delivered - times["enqueued"][key]))
    return waits


def test_critical_path(spark: SparkSession) -> None:
    """The ordinary message's time goes to its consumer, the slowest's to waiting; shares are of the whole."""
    ledger = Ledger()
    for number in range(200):
        slow = number >= 198
        ledger.journey(number, number, seconds=number, waits=60.0 if slow else 0.1, works=1.0)
    found = results(job("critical-path"), ledger.inputs(spark))["stages"]
    of = {(row["path"], row["of"], row["hop"]): row for row in found}
    ordinary, slowest = of["delivery", "ordinary", "settle"], of["delivery", "slowest", "wait"]
    assert ordinary["share"] > 0.8
    assert slowest["share"] > 0.95
    assert slowest["saved_us"] == 30_000_000
    assert slowest["messages"] == 2
    for path in ("delivery", "confirm"):
        for sort in ("ordinary", "slowest"):
            assert abs(sum(row["share"] for (p, s, _), row in of.items() if (p, s) == (path, sort)) - 1) < 1e-9
    assert of["confirm", "ordinary", "answer"]["mean_us"] == 100_000
