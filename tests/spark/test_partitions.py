from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark.balance import Load, suggest
from spark.generate.files import write
from spark.generate.plan import Plan
from spark.jobs.partitions import JOB
from spark.registry import job
from spark.run import Sources, run
from tests.support.told import Ledger, read_stages, results, uids

LOADS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1e6)), min_size=1, max_size=30)


@given(LOADS)
def test_moves_relieve(drawn: list[tuple[str, float]]) -> None:
    """For any loads, moves name partitions that their source has, and never make the busiest busier."""
    loads = {number: Load(number, owner, work) for number, (owner, work) in enumerate(drawn)}
    before, after = Counter[str](), Counter[str]()
    for load in loads.values():
        before[load.owner] += load.work
        after[load.owner] += load.work
    moves = suggest(loads.values(), 8)
    for move in moves:
        assert {loads[number].owner for number in move.partitions} == {move.source}
        assert move.target in before
        after[move.source] -= move.work
        after[move.target] += move.work
    assert sum(len(move.partitions) for move in moves) <= 8
    assert max(after.values()) <= max(before.values()) * (1 + 1e-9) + 1e-3


def test_a_hot_partition_is_left_alone_with_its_owner() -> None:
    """What cannot be divided stays; the rest of its owner's partitions go."""
    loads = [Load(0, "a", 90), Load(1, "a", 10), Load(2, "a", 10), Load(3, "b", 10)]
    assert suggest(loads, 8) == [((1, 2), "a", "b", 20)]


def test_generated(spark: SparkSession, tmp_path: Path) -> None:
    """Work, shares and waiting of each partition are what counting message by message gives, under heavy skew."""
    write(Plan(rows=20_000, queues=12, skew=0.9, losses=0, duplicates=0), str(tmp_path / "ledger"))
    found = run(spark, job("partitions"), Sources(str(tmp_path / "ledger")), str(tmp_path / "out")).tables
    work, enqueued, waits = Counter[int](), {}, defaultdict(float)
    first_delivered: dict[tuple[int, str], float] = {}
    for row in read_stages(tmp_path):
        work[row["partition"]] += row["count"] if row["stage"] in {"enqueued", "delivered", "settled"} else 0
        for uid in uids(row) if row["stage"] in {"enqueued", "delivered"} else ():
            times = enqueued if row["stage"] == "enqueued" else first_delivered
            key = (row["partition"], uid, row["queue"])
            times[key] = min(times.get(key, row["time"]), row["time"])
    for key, delivered in first_delivered.items():
        waits[key[0]] += max(0.0, (delivered - enqueued[key]).total_seconds())
    assert {row["partition"]: row["work"] for row in found["partitions"]} == {k: v for k, v in work.items() if k >= 0}
    for row in found["partitions"]:
        assert row["wait_seconds"] == pytest.approx(waits[row["partition"]])
    assert found["partitions"][0]["hottest_queue"] == "queue-0"
    assert found["partitions"][0]["share"] > 0.8
    gini = {row["of"]: row["gini"] for row in found["skew"]}["partitions"]
    values = sorted(count for partition, count in work.items() if partition >= 0)
    pairs = sum(abs(one - other) for one in values for other in values)
    assert gini == pytest.approx(pairs / (2 * len(values) * sum(values)))


def test_moves_are_commands(spark: SparkSession) -> None:
    """A queue process with most of the work is relieved by commands that the command line takes, to the other one."""
    ledger = Ledger()
    for partition, owner, count in ((3, "queue-1-aa", 30), (4, "queue-1-aa", 25), (5, "queue-2-bb", 10)):
        ledger.journey(
            partition * 100, partition * 100 + count - 1, partition=partition, queue=f"q{partition}", owner=owner
        )
    (move,) = results(JOB, ledger.inputs(spark))["moves"]
    assert move["command"] == "hopline partitions move 4 queue-2-bb"


def test_owner_is_that_of_the_latest_epoch(spark: SparkSession) -> None:
    """A partition that has moved counts for its present owner, also what the former owner did."""
    ledger = Ledger()
    ledger.journey(1, 100, partition=3, owner="queue-1-aa", epoch=1)
    ledger.journey(200, 200, seconds=10, partition=3, owner="queue-2-bb", epoch=2)
    found = results(JOB, ledger.inputs(spark))
    assert [(row["owner"], row["epoch"], row["messages"]) for row in found["partitions"]] == [("queue-2-bb", 2, 101)]
    assert found["moves"] == []
