from __future__ import annotations

import pytest

from services.common.errors import SyntaxFault
from services.common.question import Sought
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import HOUR, MS, ORIGIN, LedgerFiles, uid


def _handed_on(ledger: LedgerFiles, number: int, publisher: str, consumer: str, at: int = 0) -> None:
    one = uid(number)
    ledger.stage("received", one, at=at, client="shop", connection=publisher)
    ledger.stage("routed", one, at=at + MS, queue="q", client="shop", connection=publisher)
    ledger.stage("enqueued", one, at=at + 2 * MS, queue="q")
    ledger.stage("delivered", one, at=at + 3 * MS, queue="q", attempt=1)
    ledger.stage("sent", one, at=at + 4 * MS, queue="q", client="desk", connection=consumer)


async def _ends(look_up: LookUp, number: int) -> dict[str, tuple[str, str]]:
    [journey] = (await look_up.trace(str(uid(number)))).journeys
    return {step.stage: (step.user, step.peer) for message in journey.messages for step in message.steps}


async def test_publisher_and_consumer_have_user_and_address(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Each step of a connection says who is at its other end, also that of a get; a queue's own steps say nothing."""
    _handed_on(ledger, 1, "5.1", "5.2")
    ledger.connection("5.1", "alice", "10.0.0.1:5000", at=-MS)
    ledger.connection("5.2", "bob", "10.0.0.2:6000", at=-2 * MS)
    ledger.connection("5.2", "carol", "10.0.0.3:7000", instance="gateway-of-another-data-folder")
    ledger.file()
    ends = await _ends(look_up, 1)
    assert ends["received"] == ends["routed"] == ("alice", "10.0.0.1:5000")
    assert ends["sent"] == ("bob", "10.0.0.2:6000")
    assert ends["enqueued"] == ends["delivered"] == ("", "")


@pytest.mark.parametrize(("told", "known"), [(0, True), (-HOUR, True), (HOUR, True), (-4 * HOUR, False)])
async def test_it_is_told_again_every_hour(ledger: LedgerFiles, look_up: LookUp, told: int, known: bool) -> None:
    """It is looked for in the hour of the row, and in those beside it, for a gap may have it; not in all others."""
    _handed_on(ledger, 1, "5.1", "5.2")
    ledger.connection("5.1", "alice", "10.0.0.1:5000", at=told)
    ledger.file()
    assert (await _ends(look_up, 1))["received"] == (("alice", "10.0.0.1:5000") if known else ("", ""))


async def test_before_it_is_filed(ledger: LedgerFiles) -> None:
    """What is on its way to a file is known already."""
    _handed_on(ledger, 1, "5.1", "5.2")
    ledger.connection("5.1", "alice", "10.0.0.1:5000")
    tables = ledger.tables()
    look_up = LookUp(ledger.folder, lambda: tables)
    assert (await _ends(look_up, 1))["received"] == ("alice", "10.0.0.1:5000")
    await look_up.stop()


async def test_a_ledger_of_an_older_release(ledger: LedgerFiles, look_up: LookUp) -> None:
    """One that has no connections on record reads as before, and is searched as before."""
    _handed_on(ledger, 1, "5.1", "5.2")
    ledger.file()
    assert set((await _ends(look_up, 1)).values()) == {("", "")}
    assert [journey.match.uid for journey in (await look_up.search(Sought(client="shop"))).journeys] == [uid(1)]


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        (Sought(client="alice"), [3, 1]),
        (Sought(client="al*"), [3, 1]),
        (Sought(client="10.0.0.1"), [1]),
        (Sought(client="10.0.0.1:5000"), [1]),
        (Sought(client="10.0.0.*"), [3, 2, 1]),
        (Sought(client="shop"), [3, 2, 1]),
        (Sought(client="nobody"), []),
        (Sought(consumer="bob"), [3, 2, 1]),
        (Sought(consumer="bob", client="alice", queue="q"), [3, 1]),
        (Sought(consumer="alice"), []),
        (Sought(virtual_host="other", client="alice"), []),
    ],
)
async def test_by_user_or_address(ledger: LedgerFiles, look_up: LookUp, sought: Sought, found: list[int]) -> None:
    """Publishers and consumers are found by their user, and by their address with or without the port."""
    _handed_on(ledger, 1, "5.1", "5.9", at=-30 * HOUR)
    _handed_on(ledger, 2, "5.2", "5.9", at=1)
    _handed_on(ledger, 3, "5.3", "5.9", at=2)
    ledger.connection("5.1", "alice", "10.0.0.1:5000", at=-30 * HOUR)
    ledger.connection("5.2", "eve", "10.0.0.2:5000")
    ledger.connection("5.3", "alice", "10.0.0.3:5000")
    ledger.connection("5.9", "bob", "192.168.0.1:5000", at=-30 * HOUR)
    ledger.file()
    assert [journey.match.uid - ORIGIN for journey in (await look_up.search(sought, 10)).journeys] == found


async def test_connections_of_a_user(ledger: LedgerFiles) -> None:
    """Which connections a user or address has had, filed or not, the newest first: for rows that name connections."""
    ledger.connection("5.1", "alice", "10.0.0.1:5000", at=-30 * HOUR)
    ledger.connection("5.2", "eve", "10.0.0.2:5000")
    ledger.file()
    unfiled = LedgerFiles(ledger.folder)
    unfiled.connection("5.3", "alice", "10.0.0.3:5000")
    tables = unfiled.tables()
    look_up = LookUp(ledger.folder, lambda: tables)
    asked = ("alice", "10.0.0.2", "10.0.0.*", "nobody")
    found = [await look_up.connections("/", who) for who in asked]
    assert found[0] == ["5.3", "5.1"]
    assert (found[1], sorted(found[2]), found[3]) == (["5.2"], ["5.1", "5.2", "5.3"], [])
    assert await look_up.connections("other", "alice") == []
    with pytest.raises(SyntaxFault):
        await look_up.connections("/", "x" * 256)
    await look_up.stop()
