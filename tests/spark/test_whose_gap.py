"""Which gaps of the record, and whose, may hide what became of a message."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_audit import CONFIRMED, audit_rows, fates, gap
from tests.support.ledger_rows import START, file_rows, stage


@pytest.mark.parametrize(
    ("missed", "unknown"),
    [
        (gap(60, "queue-0", since=START + timedelta(seconds=0.5)), "queue-0"),
        (gap(60, "queue-0", since=START + timedelta(seconds=30)), ""),
        (gap(60, "queue-9", since=START + timedelta(seconds=-30)), ""),
        (gap(60, "gateway-0", service="gateway", since=START + timedelta(seconds=0.5)), ""),
    ],
    ids=["its owner", "its owner, later", "the owner before", "its gateway"],
)
def test_whose_gap_is_to_blame(spark: SparkSession, tmp_path: Path, missed: dict[str, Any], unknown: str) -> None:
    """What is confirmed and never came is lost, unless who had its partition then may have told of it in a gap."""
    file_rows(tmp_path / "ledger", "gaps", [missed])
    before = stage("enqueued", 40, at=-60, epoch=1, instance="queue-9")
    owner = stage("enqueued", 50, at=-20, epoch=2)
    found = audit_rows(spark, tmp_path, [before, owner, *CONFIRMED, stage("received", 60, at=100)])
    (row,) = [row for row in found.tables["fates"] if row["reason"] == "never_enqueued"]
    fate = "unknown" if unknown else "lost"
    assert (row["fate"], row["gap"].partition(" ")[0], row["messages"]) == (fate, unknown, 10)


@pytest.mark.parametrize(("instance", "fate"), [("gateway-0", "unknown"), ("gateway-8", "lost")])
def test_whose_gap_hides_where_it_went(spark: SparkSession, tmp_path: Path, instance: str, fate: str) -> None:
    """What its gateway did not tell may be missing of that gateway, and of no other."""
    file_rows(tmp_path / "ledger", "gaps", [gap(60, instance, service="gateway", since=START)])
    found = fates(audit_rows(spark, tmp_path, [*CONFIRMED[::2], stage("enqueued", 50)]))
    assert found["/", "", "confirmed", fate, "never_routed", ""] == 10


@pytest.mark.parametrize(
    ("missed", "since", "more", "blamed"),
    [
        ("queue-0", 2, [], "queue-0"),
        ("queue-0", 60, [], ""),
        ("queue-0", 2, [stage("dropped", 1, 10, at=2, reason="expired")], ""),
        ("queue-2", 1.5, [stage("taken_over", 1, at=3, queue="", epoch=2, instance="queue-2", uids=[])], ""),
    ],
    ids=["right then", "later", "what came after is on record", "of the next owner"],
)
def test_an_end_after_which_its_owner_died(
    spark: SparkSession, tmp_path: Path, missed: str, since: float, more: list[dict[str, Any]], blamed: str
) -> None:
    """It may have gone on as a dead letter: that may be missing of its owner, if that died right then."""
    file_rows(tmp_path / "ledger", "gaps", [gap(90, missed, since=START + timedelta(seconds=since))])
    rows = [*CONFIRMED, stage("enqueued", 1, 10, at=1), stage("expired", 1, 10, at=2, reason="message_ttl"), *more]
    (row,) = audit_rows(spark, tmp_path, rows).tables["fates"]
    assert (row["fate"], row["gap"].partition(" ")[0], row["messages"]) == ("expired", blamed, 10)


MANY = 250


@pytest.mark.parametrize("died", [True, False])
def test_after_very_many_gaps(spark: SparkSession, tmp_path: Path, died: bool) -> None:
    """However many gaps there were before, one of when a message was about makes it unknown, and is named."""
    gaps: list[dict[str, Any]] = []
    for instance in ("queue-0", "queue-5", "gateway-0"):
        service, begin = instance.partition("-")[0], -9000 if instance == "queue-0" else -900 + died
        some = [(at - 0.5, at) for at in range(begin, begin + MANY)] + ([(0.5, 60)] if died else [])
        gaps += [gap(at, instance, service=service, since=START + timedelta(seconds=since)) for since, at in some]
    file_rows(tmp_path / "ledger", "gaps", gaps)
    placed = {"queue": "placed", "partition": 5, "instance": "queue-5"}
    rows = [
        *CONFIRMED,
        stage("enqueued", 50, at=-9500),
        stage("received", 101, 110),
        stage("confirmed", 101, 110, at=1),
        stage("enqueued", 201, 210, at=-1000, **placed),
        stage("delivered", 201, 210, at=0 if died else -800, **placed),
        stage("received", 60, at=5000),
    ]
    found = audit_rows(spark, tmp_path, rows).tables["fates"]
    told = {row["queue"]: (row["fate"], row["gap"]) for row in found if row["messages"] == 10}
    noticed = "(silent), noticed 2026-01-31 23:11:00Z"
    if died:
        assert told["q"] == ("unknown", f"queue-0 {noticed}")
        assert told[""] == ("unknown", f"gateway-0 {noticed}")
        assert told["placed"] == ("unknown", f"queue-5 {noticed}")
    else:
        assert (told["q"], told[""]) == (("lost", ""), ("lost", ""))


@pytest.mark.parametrize(
    ("since", "followed", "fate"),
    [(800, None, "unknown"), (800, 60, "lost"), (30, 60, "unknown"), (None, None, "lost")],
    ids=["its owner, much later", "its owner no more", "its owner", "nobody"],
)
def test_a_dead_letter_on_its_way(
    spark: SparkSession, tmp_path: Path, since: float | None, followed: float | None, fate: str
) -> None:
    """It waits for an owner without limit: who had its partition until the next takeover may have had it."""
    its = [] if since is None else [gap(since + 31, "queue-7", since=START + timedelta(seconds=since))]
    file_rows(tmp_path / "ledger", "gaps", its)
    there = {"queue": "dead", "partition": 7}
    letters = [{"first": 101, "last": 110}]
    rows = [
        *CONFIRMED[:1],
        CONFIRMED[2],
        stage("enqueued", 1, 10),
        stage("dead_lettered", 1, 10, at=1, reason="rejected", successors=letters),
        stage("enqueued", 500, at=-60, instance="queue-7", **there),
        stage("routed", 101, 110, at=1, service="queue", **there),
        stage("received", 60, at=5000),
    ]
    if followed:
        rows.append(stage("recovered", 500, at=followed, epoch=2, instance="queue-8", reason="journal", **there))
    found = audit_rows(spark, tmp_path, rows).tables["fates"]
    (row,) = [row for row in found if row["origin"] == "dead_letter"]
    assert (row["fate"], row["messages"], bool(row["gap"])) == (fate, 10, fate == "unknown")


@pytest.mark.parametrize("handed", [True, False])
def test_an_owner_that_could_not_tell(spark: SparkSession, tmp_path: Path, handed: bool) -> None:
    """Who followed the last known owner, and was killed before any row of it got out, may have had the message."""
    file_rows(tmp_path / "ledger", "gaps", [gap(60, "queue-9", since=START)])
    rows = [*CONFIRMED, stage("enqueued", 50, at=-60), stage("received", 60, at=5000)]
    if handed:
        nobody = {"virtual_host": "", "queue": "", "count": 0, "first_uid": None, "last_uid": None, "uids": []}
        rows.append({**stage("handed_over", 0, at=-30), **nobody})
    found = fates(audit_rows(spark, tmp_path, rows))
    assert found["/", "q", "confirmed", "unknown" if handed else "lost", "never_enqueued", ""] == 10
