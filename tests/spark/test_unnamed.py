"""Messages of queues that were deleted while nobody owned their partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_audit import CONFIRMED, audit_rows, fates
from tests.support.ledger_rows import stage

NEXT = {"at": 9, "epoch": 2, "partition": 1, "instance": "queue-2"}


@pytest.mark.parametrize("persisted", [True, False])
def test_dropped_with_a_queue_that_is_gone(spark: SparkSession, tmp_path: Path, persisted: bool) -> None:
    """They are dropped, and not lost, as a look-up says, though the next owner names the partition only."""
    on_disk = [stage("persisted", 1, 10, at=1, epoch=1, partition=1)] if persisted else []
    rows = [
        *CONFIRMED,
        stage("enqueued", 1, 4, epoch=1, partition=1),
        stage("enqueued", 5, 10, epoch=1, partition=1),
        *on_disk,
        stage("recovered", 1, 10, queue="", reason="journal", **NEXT),
        stage("dropped", 1, 7, queue="", reason="queue_deleted", **NEXT),
        stage("dropped", 8, 10, queue="", reason="queue_deleted", **NEXT),
        stage("received", 30, at=1000),
    ]
    result = audit_rows(spark, tmp_path, rows)
    assert fates(result) == {
        ("/", "q", "confirmed", "dropped", "queue_deleted", ""): 10,
        ("/", "", "unconfirmed", "not_enqueued", "", ""): 1,
    }
    verdict = result.tables["verdict"][0]
    assert (verdict["lost"], verdict["lost_transient"]) == (0, 0)


def test_copies_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    """A copy in a queue of another partition waits as before."""
    rows = [
        *CONFIRMED,
        stage("routed", 1, 10, queue="other"),
        stage("enqueued", 1, 10, epoch=1, partition=1),
        stage("enqueued", 1, 10, epoch=1, partition=2, queue="other"),
        stage("dropped", 1, 10, queue="", reason="queue_deleted", **NEXT),
    ]
    assert fates(audit_rows(spark, tmp_path, rows)) == {
        ("/", "q", "confirmed", "dropped", "queue_deleted", ""): 10,
        ("/", "other", "confirmed", "waiting", "", ""): 10,
    }


@pytest.mark.parametrize(
    ("more", "fates_of_copies"),
    [
        ([], ("unknown", "unknown")),
        ([stage("recovered", 1, 10, queue="b", reason="journal", **NEXT)], ("dropped", "waiting")),
        ([stage("settled", 1, 10, at=2, queue="b", epoch=1, partition=1)], ("dropped", "settled")),
        ([stage("settled", 1, 10, at=2, queue="b", epoch=1, partition=1, outcome="rejected")], ("dropped", "rejected")),
    ],
    ids=["either", "the next owner has the other", "the other had ended", "rejected"],
)
def test_copies_in_two_queues_of_the_partition(
    spark: SparkSession, tmp_path: Path, more: list[dict[str, Any]], fates_of_copies: tuple[str, str]
) -> None:
    """The drop means the copy that has no other end, and that the next owner does not tell of."""
    copies = [stage("enqueued", 1, 10, queue=queue, epoch=1, partition=1) for queue in ("a", "b")]
    routed = [stage("routed", 1, 10, queue=queue, partition=1) for queue in ("a", "b")]
    end = stage("dropped", 1, 10, queue="", reason="queue_deleted", **NEXT)
    found = audit_rows(spark, tmp_path, [CONFIRMED[0], CONFIRMED[2], *routed, *copies, *more, end]).tables["fates"]
    assert [(row["queue"], row["fate"], row["messages"]) for row in sorted(found, key=lambda row: row["queue"])] == [
        (queue, fate, 10) for queue, fate in zip("ab", fates_of_copies, strict=True)
    ]
