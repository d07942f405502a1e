from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from spark.generate.files import write
from spark.generate.plan import Plan
from spark.jobs.lag import JOB
from spark.registry import job
from spark.run import Sources, run
from tests.support.told import START, Ledger, read_stages, results, uids

ENDED = {"settled", "expired", "dead_lettered", "dropped"}


def test_a_queue_that_grows(spark: SparkSession) -> None:
    """A queue that gets ten a second and gives five grows by five a second; one that keeps up does not."""
    ledger = Ledger()
    for second in range(60):
        ledger.tell("enqueued", second, 10 * second, 10 * second + 9, queue="grows", partition=1)
        ledger.tell("delivered", second + 0.5, 5 * second, 5 * second + 4, queue="grows", partition=1, attempt=1)
        ledger.tell("sent", second + 0.5, 5 * second, 5 * second + 4, queue="grows", client="tired", consumer="t")
        ledger.tell("settled", second + 0.6, 5 * second, 5 * second + 4, queue="grows", outcome="accepted")
        ledger.journey(10_000 + second, 10_000 + second, seconds=second, queue="even", works=0.01)
    found = results(JOB, ledger.inputs(spark, window="1"))
    queues = {row["queue"]: row for row in found["queues"]}
    assert abs(queues["grows"]["growth_per_second"] - 5) < 0.1
    assert (queues["grows"]["backlog"], queues["grows"]["undelivered"]) == (300, 300)
    assert queues["grows"]["oldest"].timestamp() == START.timestamp() + 30
    assert abs(queues["even"]["growth_per_second"]) < 0.1
    assert queues["even"]["backlog"] == 0
    assert [row["why"] for row in found["consumers"] if row["slow"]] == [
        "settles 5.1 a second, while the queue grows by 5.0 a second"
    ]


def test_a_slow_consumer(spark: SparkSession) -> None:
    """Of three consumers of a queue the one that takes ten times as long is named, and what each still holds."""
    ledger = Ledger()
    for number in range(90):
        tag, works = (("a", 0.1), ("b", 0.12), ("c", 1.2))[number % 3]
        ledger.tell("enqueued", number, number, queue="q", partition=1)
        ledger.tell("delivered", number, number, queue="q", partition=1, attempt=1)
        ledger.tell("sent", number, number, queue="q", client="app", connection="c1", consumer=tag)
        if number < 84:
            ledger.tell("settled", number + works, number, queue="q", outcome="accepted")
    ledger.tell("requeued", 100, 89, queue="q", reason="released")
    consumers = {row["consumer"]: row for row in results(JOB, ledger.inputs(spark))["consumers"]}
    assert [tag for tag, row in consumers.items() if row["slow"]] == ["c"]
    assert consumers["c"]["why"] == "takes 10.0 times as long as is usual for this queue"
    assert {tag: row["held"] for tag, row in consumers.items()} == {"a": 2, "b": 2, "c": 1}


def test_gone_with_its_owner(spark: SparkSession) -> None:
    """A message that the next owner did not find is not in the queue any more, and no consumer holds it."""
    ledger = Ledger()
    first, second = {"queue": "q", "partition": 1}, {"partition": 1, "epoch": 2, "instance": "queue-2"}
    ledger.tell("enqueued", 0, 0, 9, **first, epoch=1)
    ledger.tell("delivered", 0.5, 8, 9, **first, epoch=1, attempt=1)
    ledger.tell("sent", 0.5, 8, 9, queue="q", client="app", consumer="c")
    ledger.tell("recovered", 5, 0, 3, queue="q", **second, reason="journal")
    ledger.tell("taken_over", 5, 0, count=0, uids=[], **second)
    found = results(JOB, ledger.inputs(spark))
    (queue,) = found["queues"]
    assert (queue["backlog"], queue["gone"], queue["undelivered"]) == (4, 6, 4)
    assert [row["held"] for row in found["consumers"]] == [0]


def test_let_go_by_a_former_owner(spark: SparkSession) -> None:
    """What an owner lost with its partition has ended; not what was sent again, though that one tells of it late."""
    ledger = Ledger()
    first, second = {"queue": "q", "partition": 1, "epoch": 1}, {"partition": 1, "epoch": 2, "instance": "queue-2"}
    ledger.tell("enqueued", 0, 0, 9, **first)
    ledger.tell("taken_over", 5, 0, count=0, uids=[], **second)
    ledger.tell("enqueued", 6, 8, 9, queue="q", **second)
    ledger.tell("dropped", 7, 0, 9, **first, reason="no_owner")
    (queue,) = results(JOB, ledger.inputs(spark))["queues"]
    assert (queue["enqueued"], queue["backlog"], queue["undelivered"]) == (10, 2, 2)


def test_too_few_to_judge(spark: SparkSession) -> None:
    """A consumer of two messages is not called slow, however long it took for them."""
    ledger = Ledger()
    for number in range(60):
        tag, works = ("c", 5.0) if number in {20, 40} else ("ab"[number % 2], 0.1)
        ledger.tell("enqueued", number, number, queue="q", partition=1)
        ledger.tell("delivered", number, number, queue="q", partition=1, attempt=1)
        ledger.tell("sent", number, number, queue="q", client="app", connection="c1", consumer=tag)
        ledger.tell("settled", number + works, number, queue="q", outcome="accepted")
    consumers = {row["consumer"]: row for row in results(JOB, ledger.inputs(spark))["consumers"]}
    assert {tag: row["messages"] for tag, row in consumers.items()} == {"a": 28, "b": 30, "c": 2}
    assert consumers["c"]["times_usual"] > 10
    assert not any(row["slow"] for row in consumers.values())


def test_generated(spark: SparkSession, tmp_path: Path) -> None:
    """What each queue is left with is what counting message by message leaves."""
    write(Plan(rows=20_000, queues=8, skew=0.9, losses=0), str(tmp_path / "ledger"))
    sources = Sources(str(tmp_path / "ledger"), options={"window": "1"})
    found = run(spark, job("lag"), sources, str(tmp_path / "out")).tables
    came, ended = set[tuple[str, int]](), set[tuple[str, int]]()
    for row in read_stages(tmp_path):
        copies = {(row["queue"], uid) for uid in uids(row)} if row["queue"] else set()
        came |= copies if row["stage"] in {"enqueued", "recovered"} else set()
        ended |= copies if row["stage"] in ENDED else set()
    expected = Counter(queue for queue, _ in came) - Counter(queue for queue, _ in ended & came)
    assert {row["queue"]: row["backlog"] for row in found["queues"] if row["backlog"]} == expected
