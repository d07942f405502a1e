"""Messages of queues that were deleted while nobody owned their partition."""

from __future__ import annotations

from pathlib import Path

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
