"""Who may have had a partition, as far as the ledger tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.mgmt.lookup.blame import Follower
from services.mgmt.lookup.database import Database
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.lookup.owners import Owners
from services.mgmt.lookup.search import Search
from tests.support.ledger_files import HOUR, MS, NOON, LedgerFiles, uid

S = 1000 * MS


def _publish(ledger: LedgerFiles, *partitions: int) -> None:
    """A message that is confirmed, and that no owner tells of."""
    ledger.stage("received", uid(1))
    for partition in partitions:
        ledger.stage("routed", uid(1), at=MS, queue=f"q{partition}", partition=partition)
    ledger.stage("confirmed", uid(1), at=2 * MS)


async def _fates(look_up: LookUp) -> list[tuple[str, str | None]]:
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    return [(copy.fate, copy.gap and copy.gap.instance) for copy in journey.messages[0].copies]


@pytest.mark.parametrize("took_over_at", [-2 * HOUR, -60 * S])
@pytest.mark.parametrize("left", ["not", "handed over", "handed over long before", "died", "was cut off", "died later"])
async def test_an_owner_that_could_not_tell(ledger: LedgerFiles, look_up: LookUp, left: str, took_over_at: int) -> None:
    """Who followed the last known owner, and was killed before any row of it got out, may have had the message."""
    ledger.stage("taken_over", at=took_over_at, partition=7, epoch=1, instance="queue-8")
    if left.startswith("handed"):
        at = -30 * S if left == "handed over" else -20 * HOUR
        ledger.stage("handed_over", at=at, partition=7, epoch=1, instance="queue-8")
    if left != "not" and not left.startswith("handed"):
        ledger.gap("queue-8", at=-5 * S, reason="silent", since=-40 * S)
    if left == "was cut off":
        ledger.gap("queue-8", at=-4 * S, reason="heard_again")
    if left == "died later":
        ledger.stage("settled", uid(9), at=50 * S, queue="x", partition=9, epoch=1, instance="queue-8")
    _publish(ledger, 7)
    ledger.gap("queue-9", at=40 * S, since=0, reason="silent")
    ledger.file()
    is_unknown = left.startswith("handed") or left == "died"
    assert await _fates(look_up) == [("unknown", "queue-9") if is_unknown else ("lost", None)]


async def test_of_a_third_owner_nobody_is_missing(ledger: LedgerFiles, look_up: LookUp) -> None:
    """An owner that handed over to one that told is followed by nobody else."""
    ledger.stage("taken_over", at=-90 * S, partition=7, epoch=1, instance="queue-8")
    ledger.stage("handed_over", at=-60 * S, partition=7, epoch=1, instance="queue-8")
    ledger.stage("taken_over", at=-59 * S, partition=7, epoch=2, instance="queue-1")
    _publish(ledger, 7)
    ledger.gap("queue-9", at=40 * S, since=0, reason="silent")
    ledger.file()
    assert await _fates(look_up) == [("lost", None)]


async def test_a_fan_out_asks_once(ledger: LedgerFiles, look_up: LookUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners of all partitions are looked up together, however many copies are missing."""
    for partition in range(50):
        ledger.stage("taken_over", at=-60 * S, partition=partition, epoch=1, instance=f"queue-{partition % 2}")
    _publish(ledger, *range(50))
    ledger.gap("queue-1", at=40 * S, since=0, reason="silent")
    ledger.file()
    asked: list[str] = []

    def counting(name: str, ask: Any) -> Any:
        return lambda *about: (asked.append(name), ask(*about))[1]

    for name in ("told", "taken_over", "handed_over", "missed"):
        monkeypatch.setattr(Search, name, counting(name, getattr(Search, name)))
    assert await _fates(look_up) == [("lost", None), ("unknown", "queue-1")] * 25
    assert sorted(asked) == ["handed_over", "missed", "missed", "taken_over", "told"]


@pytest.mark.parametrize(("followed", "expected"), [(None, ("unknown", "queue-1")), (60, ("lost", None))])
async def test_a_dead_letter_on_its_way(
    ledger: LedgerFiles, look_up: LookUp, followed: int | None, expected: tuple[str, str | None]
) -> None:
    """One that came nowhere is lost, as the audit says, unless who had its partition may have had it."""
    ledger.stage("taken_over", at=-60 * S, partition=7, epoch=1, instance="queue-1")
    ledger.stage("received", uid(1))
    facts = {"queue": "q", "partition": 2, "epoch": 1}
    ledger.stage("dead_lettered", uid(1), at=MS, reason="rejected", successors=[uid(2)], **facts)
    ledger.stage("routed", uid(2), at=2 * MS, service="queue", queue="dead", partition=7)
    if followed:
        ledger.stage("taken_over", at=followed * S, partition=7, epoch=2, instance="queue-2")
    ledger.gap("queue-1", at=900 * S, since=800 * S, reason="silent")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    [letter] = journey.messages[1].copies
    assert (letter.fate, letter.gap and letter.gap.instance) == expected


async def test_where_a_message_went_that_nobody_received(ledger: LedgerFiles, look_up: LookUp) -> None:
    """It may be a dead letter, whose row is missing: any queue process may have sent it on."""
    ledger.stage("confirmed", uid(1), at=2 * MS)
    ledger.gap("queue-9", at=40 * S, since=-S, reason="silent")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert [gap.instance for gap in journey.gaps] == ["queue-9"]


@pytest.mark.parametrize(("died", "told"), [("queue-1", ["queue-1"]), ("queue-3", [])])
@pytest.mark.parametrize("letter", [True, False])
async def test_an_owner_of_which_all_is_missing(
    ledger: LedgerFiles, look_up: LookUp, died: str, told: list[str], *, letter: bool
) -> None:
    """Of a message whose first word in a queue is that of the next owner: the former one may have delivered it. It is
    told also where the message has ended since.
    """
    ledger.stage("taken_over", at=-60 * S, partition=7, epoch=1, instance="queue-1")
    ledger.stage("taken_over", at=5 * S, partition=7, epoch=2, instance="queue-2")
    ledger.stage("received", uid(1))
    if letter:
        facts = {"queue": "q", "partition": 2, "epoch": 1, "instance": "queue-2"}
        ledger.stage("dead_lettered", uid(1), at=MS, reason="rejected", successors=[uid(2)], **facts)
    its = uid(2) if letter else uid(1)
    here = {"queue": "dead", "partition": 7, "epoch": 2, "instance": "queue-2"}
    ledger.stage("routed", its, at=2 * MS, service="queue", queue="dead", partition=7, instance="queue-2")
    for at, stage in enumerate(("recovered", "delivered", "settled"), 5):
        ledger.stage(stage, its, at=at * S, outcome="accepted" if stage == "settled" else "", **here)
    ledger.gap(died, at=40 * S, since=-S, reason="silent")
    ledger.file()
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert journey.messages[-1].ended
    assert [gap.instance for gap in journey.gaps] == told


def _heir(ledger: LedgerFiles, *partitions: int, at: int) -> None:
    """Who tells of them under epoch 2, and not of its takeover."""
    for partition in partitions:
        heir = {"queue": "x", "partition": partition, "epoch": 2, "instance": "queue-2"}
        ledger.stage("settled", uid(9), at=at, **heir)


def _wait(ledger: LedgerFiles, *partitions: int) -> None:
    _publish(ledger, *partitions)
    for partition in partitions:
        place = {"queue": f"q{partition}", "partition": partition, "epoch": 1, "instance": "queue-1"}
        ledger.stage("enqueued", uid(1), at=MS, **place)


@pytest.mark.parametrize("at", [60 * S, HOUR, 30 * HOUR, 80 * HOUR])
async def test_an_heir_that_told_late(ledger: LedgerFiles, look_up: LookUp, at: int) -> None:
    """Whose takeover is missing: it is known however much later it tells of the partition, and a copy does not wait."""
    _wait(ledger, 7)
    ledger.gap("queue-2", at=40 * S, since=20 * S, reason="given_up")
    _heir(ledger, 7, at=at)
    ledger.file()
    assert await _fates(look_up) == [("unknown", "queue-2")]


@pytest.mark.parametrize("late", [False, True])
def test_heirs_are_read_while_there_is_time(ledger: LedgerFiles, *, late: bool) -> None:
    """Then it is not known whether there are any."""
    _heir(ledger, 7, at=30 * HOUR)
    ledger.file()
    owners = Owners(Search(Database(Path(ledger.folder))), lambda: late)
    heirs = owners.since(7, 1, NOON, NOON + 40 * HOUR)
    assert heirs == (None if late else [Follower(NOON + 30 * HOUR, 2, "queue-2")])
    assert owners.since(7, 2, NOON, NOON + 40 * HOUR) == (None if late else [])


@pytest.mark.parametrize(("owner", "expected"), [("queue-1", ("unknown", "queue-1")), ("queue-2", ("", None))])
async def test_only_a_consumer_is_known(
    ledger: LedgerFiles, look_up: LookUp, monkeypatch: pytest.MonkeyPatch, owner: str, expected: tuple[str, str | None]
) -> None:
    """When it came nobody tells: owners of all time are looked for, in the hours that there are."""
    asked: list[str] = []

    def counting(search: Search, *about: int) -> Any:
        asked.append("told")
        return told(search, *about)

    told = Search.told
    monkeypatch.setattr(Search, "told", counting)
    ledger.stage("taken_over", at=-60 * HOUR, partition=7, epoch=1, instance=owner)
    ledger.stage("sent", uid(1), service="gateway", queue="q", partition=7)
    ledger.gap("queue-1", at=40 * S, since=-S, reason="silent")
    ledger.file()
    assert await _fates(look_up) == [expected]
    assert len(asked) == 2  # days, of sixty hours two have rows


@pytest.mark.parametrize("partitions", [[7], [*range(50)]], ids=["of one partition", "of many"])
async def test_heirs_are_asked_for_once(
    ledger: LedgerFiles, look_up: LookUp, monkeypatch: pytest.MonkeyPatch, partitions: list[int]
) -> None:
    """Of the first partition alone, which is quick; then of all others together, however many these are."""
    _wait(ledger, *partitions)
    _heir(ledger, 7, at=60 * S)
    ledger.gap("queue-2", at=40 * S, since=20 * S, reason="given_up")
    ledger.file()
    asked: list[str] = []

    def counting(name: str, ask: Any) -> Any:
        return lambda search, *about: (asked.append(name), ask(search, *about))[1]

    monkeypatch.setattr("services.mgmt.lookup.owners._WINDOW", 1 << 20)
    for name in ("told", "told_since", "taken_over"):
        monkeypatch.setattr(Search, name, counting(name, getattr(Search, name)))
    fates = await _fates(look_up)
    assert fates == [("unknown", "queue-2") if partition == 7 else ("waiting", None) for partition in partitions]
    assert asked == (["told_since"] if partitions == [7] else ["told_since", "told"])
