"""Messages that somebody moved or copied to another queue: they are no dead letters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.jobs import anomalies, dependencies, redeliveries
from tests.spark.test_audit import audit_rows, fates
from tests.support.ledger_rows import stage
from tests.support.told import Ledger, results

PUBLISHED = [
    stage("received", 1, 10),
    stage("routed", 1, 10, queue="a"),
    stage("enqueued", 1, 10, queue="a", at=0.5),
    stage("confirmed", 1, 10, at=1),
]
MOVED = [
    stage(
        "dead_lettered", 1, 10, queue="a", at=5, reason="moved", target="b", successors=[{"first": 901, "last": 910}]
    ),
    stage("routed", 901, 910, queue="b", service="queue", at=5),
    stage("enqueued", 901, 910, queue="b", at=5.1),
    stage("settled", 901, 906, queue="b", at=6),
]


def test_they_end_and_begin(spark: SparkSession, tmp_path: Path) -> None:
    """Each is promised once, where it is; none is a duplicate."""
    result = audit_rows(spark, tmp_path, [*PUBLISHED, *MOVED])
    assert fates(result) == {
        ("/", "a", "confirmed", "moved", "", ""): 10,
        ("/", "b", "moved", "settled", "", ""): 6,
        ("/", "b", "moved", "waiting", "", ""): 4,
    }
    (verdict,) = result.tables["verdict"]
    assert (verdict["promised"], verdict["duplicated"], verdict["lost"]) == (10, 0, 0)
    assert not result.tables["suspects"]


def test_they_must_not_be_lost(spark: SparkSession, tmp_path: Path) -> None:
    """A message that left the one queue and never came into the other is lost."""
    result = audit_rows(spark, tmp_path, [*PUBLISHED, *MOVED[:2]])
    assert fates(result)["/", "b", "moved", "lost", "never_enqueued", ""] == 10


def test_copies(spark: SparkSession, tmp_path: Path) -> None:
    """They are promised, each by itself; what they were copied of is where it was."""
    copied = [
        stage("copied", 1, 4, queue="a", at=5, reason="copied", target="b", successors=[{"first": 901, "last": 904}]),
        stage("routed", 901, 904, queue="b", service="queue", at=5),
        stage("enqueued", 901, 903, queue="b", at=5.1),
        stage("settled", 901, 903, queue="b", at=6),
    ]
    result = audit_rows(spark, tmp_path, [*PUBLISHED, *copied])
    assert fates(result) == {
        ("/", "a", "confirmed", "waiting", "", ""): 10,
        ("/", "b", "copied", "settled", "", ""): 3,
        ("/", "b", "copied", "lost", "never_enqueued", ""): 1,
    }
    assert result.tables["verdict"][0]["promised"] == 14


def test_letters_again(spark: SparkSession, tmp_path: Path) -> None:
    """Dead letters that no queue took at first, and that went on again as other messages, ended once."""
    letters = [
        stage("expired", 1, 10, queue="a", at=4, reason="queue_ttl"),
        stage("dead_lettered", 1, 10, queue="a", at=4, reason="expired", successors=[{"first": 901, "last": 910}]),
        stage("dropped", 901, 910, queue="b", at=4.1, reason="maxlen"),
        stage("copied", 1, 10, queue="a", at=5, reason="expired", successors=[{"first": 911, "last": 920}]),
        stage("routed", 911, 920, queue="b", service="queue", at=5),
        stage("enqueued", 911, 920, queue="b", at=5.1),
        stage("settled", 911, 920, queue="b", at=6),
    ]
    result = audit_rows(spark, tmp_path, [*PUBLISHED, *letters])
    assert fates(result) == {
        ("/", "a", "confirmed", "dead_lettered", "expired", ""): 10,
        ("/", "b", "dead_letter", "dropped", "maxlen", ""): 10,
        ("/", "b", "dead_letter", "settled", "", ""): 10,
    }


@pytest.mark.parametrize(
    "again",
    [
        stage("settled", 1, 10, queue="a", at=4),
        stage("dead_lettered", 1, 10, queue="a", at=7, reason="moved", successors=[{"first": 921, "last": 930}]),
    ],
    ids=["accepted", "moved again"],
)
def test_what_went_on_and_ended(spark: SparkSession, tmp_path: Path, again: dict[str, Any]) -> None:
    """One that a consumer accepted as well, or that was moved twice, is a duplicate."""
    found = fates(audit_rows(spark, tmp_path, [*PUBLISHED, *MOVED, again]))
    assert sum(count for account, count in found.items() if account[1] == "a" and account[-1] == "settled_twice") == 10


def told(tell: Callable[[Ledger], None]) -> Ledger:
    ledger = Ledger()
    for attempt in range(3):
        ledger.tell("delivered", 10 * attempt, 1, 4, queue="a", attempt=min(attempt + 1, 2))
        ledger.tell("requeued", 10 * attempt + 5, 1, 4, queue="a", reason="released")
    tell(ledger)
    return ledger


def moves(ledger: Ledger) -> None:
    ledger.tell("dead_lettered", 50, 1, 4, queue="a", reason="moved", target="b", successors=[(901, 904)])
    ledger.tell("enqueued", 51, 901, 904, queue="b")


def moves_back(ledger: Ledger) -> None:
    moves(ledger)
    ledger.tell("dead_lettered", 60, 901, 904, queue="b", reason="moved", target="a", successors=[(951, 954)])
    ledger.tell("enqueued", 61, 951, 954, queue="a")


def test_why_they_went_on(spark: SparkSession) -> None:
    """They are told by that name, where they came from and to; there and back is no circle that never ends."""
    found = results(redeliveries.JOB, told(moves_back).inputs(spark))
    assert {row["fate"] for row in found["chains"]} == {"moved"}
    assert {(row["source"], row["target"], row["reason"], row["circle"]) for row in found["dead_letters"]} == {
        ("a", "b", "moved", False),
        ("b", "a", "moved", False),
    }


def test_they_go_to_no_exchange(spark: SparkSession) -> None:
    """Nor is it an error that they left."""
    ledger = told(moves)
    edges = results(dependencies.JOB, ledger.inputs(spark))["edges"]
    assert "dead_letter" not in {row["kind"] for row in edges}
    counted = anomalies._counts(ledger.inputs(spark).stages, 1000).collect()
    assert sum(row["value"] for row in counted if row["metric"] == "errors") == 12  # that were put back
