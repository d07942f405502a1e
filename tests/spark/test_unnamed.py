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


def _gone(epoch: int = 2, first: int = 1, last: int = 10) -> dict[str, Any]:
    return stage("dropped", first, last, queue="", reason="queue_deleted", **{**NEXT, "epoch": epoch})


LET_GO = stage("dropped", 1, 10, at=2, queue="b", epoch=1, reason="no_owner")
AGAIN = stage("enqueued", 1, 10, at=3, queue="b", epoch=2)
GONE = "dropped"
SEVERAL: dict[str, tuple[str, list[dict[str, Any]], list[tuple[str, int]]]] = {
    "both": ("ab", [_gone(), _gone()], [(GONE, 10), (GONE, 10)]),
    "one more": ("ab", [_gone(), _gone(), _gone()], [(GONE, 10), (GONE, 10)]),
    "two of three": ("abc", [_gone(), _gone()], [("unknown", 10)] * 3),
    "perhaps the same, by two owners": ("ab", [_gone(), _gone(epoch=3)], [("unknown", 10)] * 2),
    "one was let go": ("ab", [LET_GO, _gone()], [(GONE, 10), ("lost (transient)", 10)]),
    "it came again": ("ab", [LET_GO, AGAIN, _gone(epoch=3)], [("unknown", 10)] * 2),
    "each message by itself": ("ab", [_gone(), _gone(first=4)], [(GONE, 7), ("unknown", 3)] * 2),
}


def test_several_copies(spark: SparkSession, tmp_path: Path) -> None:
    """An owner drops what was in each queue by itself: as many as there are copies are all of them. What went with the
    partition, in memory only, is none of those, unless it came again.
    """
    rows: list[dict[str, Any]] = []
    for number, (case, (queues, more, _)) in enumerate(SEVERAL.items()):
        copies = [stage("enqueued", 1, 10, queue=queue, epoch=1) for queue in queues]
        rows += [_in(case, number, row) for row in (CONFIRMED[0], CONFIRMED[2], *copies, *more)]
    found = audit_rows(spark, tmp_path, rows).tables["fates"]
    for case, (queues, _, fates_of_copies) in SEVERAL.items():
        of_case = sorted((row["queue"], row["fate"], row["messages"]) for row in found if row["virtual_host"] == case)
        of_each = len(fates_of_copies) // len(queues)
        named = "".join(queue * of_each for queue in queues)
        assert of_case == [(queue, *its) for queue, its in zip(named, fates_of_copies, strict=True)], case
    assert {row["duplicate"] for row in found} == {""}


def _in(case: str, number: int, row: dict[str, Any]) -> dict[str, Any]:
    """The same, of messages, in a partition and in a virtual host that nothing else is about."""
    uids = [{end: uid + 1000 * number for end, uid in one.items()} for one in row["uids"]]
    return {**row, "virtual_host": case, "partition": number, "uids": uids}
