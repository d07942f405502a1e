from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.jobs.redeliveries import JOB
from spark.registry import job
from spark.run import Sources, run
from tests.support.told import START, Ledger, read_stages, results, uids


def test_poison(spark: SparkSession) -> None:
    """A message that is put back time and again and never settled is suspect; one that is settled at last is not."""
    ledger = Ledger()
    for attempt in range(4):
        ledger.tell("delivered", 10 * attempt, 1, 10, queue="q", partition=1, attempt=min(attempt + 1, 2))
        ledger.tell("requeued", 10 * attempt + 5, 1, 10, queue="q", partition=1, reason="consumer_gone")
    ledger.tell("settled", 50, 1, 6, queue="q", partition=1, outcome="accepted")
    ledger.tell("settled", 50, 7, 7, queue="q", partition=1, outcome="rejected")
    ledger.tell("dead_lettered", 50, 7, 7, queue="q", reason="rejected", target="dlx", successors=[(900, 900)])
    ledger.tell("enqueued", 51, 900, queue="dead", partition=2)
    ledger.journey(20, 29, queue="q")
    found = results(JOB, ledger.inputs(spark))
    chains = {row["fate"]: (row["attempts"], row["reason"], row["messages"]) for row in found["chains"]}
    assert chains == {
        "settled": (4, "consumer_gone", 6),
        "dead_lettered": (4, "consumer_gone", 1),
        "waiting": (4, "consumer_gone", 3),
    }
    assert all(abs(row["gap_p50_us"] - 10_000_000) < 200_000 for row in found["chains"])
    suspects = [(row["first_uid"], row["last_uid"], row["fate"]) for row in found["suspects"]]
    assert sorted(suspects) == [(7, 7, "dead_lettered"), (8, 10, "waiting")]
    assert found["suspects"][0]["first_time"].timestamp() == START.timestamp()
    (dead,) = found["dead_letters"]
    assert (dead["source"], dead["target"], dead["reason"], dead["messages"]) == ("q", "dead", "rejected", 1)
    assert not dead["circle"]


def test_circles(spark: SparkSession) -> None:
    """Messages that a retry queue sends back where they came from are seen to go around."""
    ledger = Ledger()
    for first, source, target, reason in ((1, "work", "retry", "rejected"), (101, "retry", "work", "expired")):
        ledger.tell(
            "dead_lettered", first, first, queue=source, reason=reason, target="x", successors=[(first + 100,) * 2]
        )
        ledger.tell("enqueued", first + 1, first + 100, queue=target)
    found = results(JOB, ledger.inputs(spark))["dead_letters"]
    assert {(row["source"], row["target"], row["circle"]) for row in found} == {
        ("work", "retry", True),
        ("retry", "work", True),
    }


def test_generated(spark: SparkSession, tmp_path: Path) -> None:
    """Of a generated ledger: messages that were delivered more than once, one by one, and all dead letters."""
    write(Plan(rows=20_000, queues=8, skew=0.9, losses=0, duplicates=5, unusual=0.2), str(tmp_path / "ledger"))
    found = run(spark, job("redeliveries"), Sources(str(tmp_path / "ledger")), str(tmp_path / "out")).tables
    delivered, dead = Counter[tuple[str, int]](), Counter[tuple[str, str]]()
    for row in read_stages(tmp_path):
        if row["stage"] == "delivered":
            delivered.update((row["queue"], uid) for uid in uids(row))
        if row["stage"] == "dead_lettered":
            dead[row["queue"], row["reason"]] += row["count"]
    expected = Counter((queue, times) for (queue, _), times in delivered.items() if times > 1)
    again = Counter[tuple[str, int]]()
    for row in found["chains"]:
        again[row["queue"], row["attempts"]] += row["messages"]
    assert again == expected
    assert {(row["source"], row["reason"]): row["messages"] for row in found["dead_letters"]} == dead
