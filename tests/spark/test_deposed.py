"""Queues that are deleted while a former owner of their partition stands still: it says so after the next one has."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_audit import CONFIRMED, audit_rows, fates
from tests.support.ledger_rows import stage

FIRST = {"epoch": 1, "partition": 1}
NEXT = {"epoch": 2, "partition": 1, "instance": "queue-2"}


@pytest.mark.parametrize(
    ("reason", "at", "duplicate"),
    [
        ("queue_deleted", 9, ""),
        ("queue_deleted", 3, "delivered_after_settled"),
        ("maxlen", 9, "delivered_after_settled"),
    ],
    ids=["after the delivery", "before it", "for another reason"],
)
def test_dropped_by_a_former_owner(spark: SparkSession, tmp_path: Path, reason: str, at: float, duplicate: str) -> None:
    """That a former owner drops what was in a deleted queue, after the next one delivered it, is no duplicate."""
    rows = [
        *CONFIRMED,
        stage("enqueued", 1, 10, at=1, **FIRST),
        stage("persisted", 1, 10, at=1, **FIRST),
        stage("recovered", 1, 10, at=4, reason="journal", **NEXT),
        stage("delivered", 1, 5, at=5, **NEXT),
        stage("dropped", 1, 10, at=6, reason="queue_deleted", **NEXT),
        stage("dropped", 1, 10, at=at, reason=reason, **FIRST),
    ]
    result = audit_rows(spark, tmp_path, rows)
    assert {key[-1]: count for key, count in fates(result).items()} == (
        {duplicate: 5, "": 5} if duplicate else {"": 10}
    )


def test_settled_for_a_former_owner(spark: SparkSession, tmp_path: Path) -> None:
    """What a consumer settled, and then was delivered by the next owner, is a duplicate, though its queue is gone."""
    rows = [
        *CONFIRMED,
        stage("enqueued", 1, 10, at=1, **FIRST),
        stage("delivered", 1, 10, at=2, **FIRST),
        stage("settled", 1, 10, at=3, outcome="accepted", **FIRST),
        stage("recovered", 1, 10, at=4, reason="journal", **NEXT),
        stage("delivered", 1, 10, at=5, **NEXT),
        stage("dropped", 1, 10, at=6, reason="queue_deleted", **NEXT),
        stage("dropped", 1, 10, at=9, reason="queue_deleted", **FIRST),
    ]
    assert [key[-1] for key in fates(audit_rows(spark, tmp_path, rows))] == ["delivered_after_settled"]
