"""Dead letters are found by who published what they were at first."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from services.common.question import Sought
from services.mgmt.lookup import answers
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import HOUR, MS, ORIGIN, LedgerFiles, uid

_WORK = {"exchange": "e", "routing_key": "k", "connection": "5.1"}


def _publish(ledger: LedgerFiles, *uids: int | tuple[int, int], at: int = 0, client: str = "shop") -> None:
    ledger.stage("received", *uids, at=at, client=client, **_WORK)
    ledger.stage("routed", *uids, at=at + MS, queue="work", client=client, **_WORK)


def _move(
    ledger: LedgerFiles, was: Any, became: Any, *, at: int, to: str, key: str = "dead", since: str = "work"
) -> None:
    """Messages go on from one queue to another, as their owner tells it."""
    ledger.stage("dead_lettered", *was, at=at, queue=since, successors=became, reason="rejected")
    ledger.stage("routed", *became, at=at + MS, service="queue", queue=to, routing_key=key)
    ledger.stage("enqueued", *became, at=at + 2 * MS, queue=to)


@pytest.fixture
def filed(ledger: LedgerFiles) -> LedgerFiles:
    """Of 1 to 4, which two have published, the letters 14 to 11, and days later 21 and 22 of two of these."""
    _publish(ledger, (uid(1), uid(2)))
    _publish(ledger, (uid(3), uid(4)), at=MS, client="crm")
    _move(ledger, [uid(1), (uid(2), uid(3)), uid(4)], [uid(14), (uid(12), uid(13)), uid(11)], at=9 * MS, to="parked")
    later = 50 * HOUR
    _move(ledger, [(uid(13), uid(14))], [(uid(21), uid(22))], at=later, to="given-up", since="parked", key="late")
    ledger.file()
    _publish(ledger, (uid(1), uid(2)))  # what is filed twice is there once
    ledger.file("again.parquet")
    ledger.stage("settled", uid(22), uid(12), at=later + HOUR, queue="given-up", outcome="accepted")
    ledger.file("late.parquet")
    return ledger


def _found(journeys: Any) -> list[int]:
    return [journey.match.uid - ORIGIN for journey in journeys]


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        (Sought(queue="parked", client="shop"), [14, 12]),
        (Sought(queue="parked", client="cr?"), [13, 11]),
        (Sought(queue="parked", client="5.1"), [14, 13, 12, 11]),
        (Sought(queue="parked", client="nobody"), []),
        (Sought(queue="given-up", client="shop"), [22]),
        (Sought(queue="given-up", client="crm"), [21]),
        (Sought(queue="given-up", client="shop", fate="accepted"), [22]),
        (Sought(queue="given-up", client="crm", fate="accepted"), []),
        (Sought(queue="*", client="shop", key="dead"), [14, 12]),
        (Sought(client="shop", key="late"), [22]),
        (Sought(queue="work", client="shop"), [2, 1]),
        (Sought(queue="parked", client="shop", fate="refused"), []),
        (Sought(virtual_host="other", queue="parked", client="shop"), []),
    ],
)
async def test_found(filed: LedgerFiles, look_up: LookUp, sought: Sought, found: list[int]) -> None:
    """By the publisher of their first message, whatever it went on as since, each with its whole way."""
    trace = await look_up.search(sought, 10)
    assert _found(trace.journeys) == found
    for journey in trace.journeys:
        assert any(step.stage == "received" for step in journey.messages[0].steps)


async def test_by_user(ledger: LedgerFiles, filed: LedgerFiles, look_up: LookUp) -> None:
    """A publisher is also its user, and its address."""
    ledger.connection("5.1", "alice", "10.0.0.1:5000")
    ledger.file("b.parquet")
    for who in ("alice", "10.0.0.1"):
        trace = await look_up.search(Sought(queue="given-up", client=who), 10)
        assert _found(trace.journeys) == [22, 21]


async def test_many_as_one_range(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Of a long range only as many are told as are asked for."""
    _publish(ledger, (uid(1), uid(1000)))
    _move(ledger, [(uid(1), uid(1000))], [(uid(2001), uid(3000))], at=MS, to="parked")
    ledger.file()
    trace = await look_up.search(Sought(queue="parked", client="shop"), 2)
    assert (_found(trace.journeys), trace.more) == ([3000, 2999], True)


async def test_cut_short(filed: LedgerFiles, look_up: LookUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters that were not led back for want of time are no proof that there are none."""
    monkeypatch.setattr(answers, "_SECONDS", 10)
    ticks = itertools.chain([0.0, 0.0], itertools.repeat(11.0))
    look_up._clock = lambda: next(ticks)
    trace = await look_up.search(Sought(queue="given-up", client="shop"), 2)
    assert (trace.journeys, trace.cut_short) == ([], True)
