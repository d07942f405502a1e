"""What is said of messages while nothing is put on file."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from services.cli.trace import show
from services.common.trace import Trace
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import MS, LedgerFiles, uid

_PLACE = {"queue": "q", "partition": 1, "epoch": 1}


@pytest.fixture
def filed(ledger: LedgerFiles) -> LedgerFiles:
    """Messages: lost, lost with its owner, waiting, taken."""
    for number in (1, 2, 3, 4):
        ledger.stage("received", uid(number))
        ledger.stage("routed", uid(number), at=MS, queue="q")
        ledger.stage("confirmed", uid(number), at=2 * MS)
    for number in (2, 3, 4):
        ledger.stage("enqueued", uid(number), at=3 * MS, **_PLACE)
    ledger.stage("dropped", uid(2), at=9 * MS, reason="no_owner", **_PLACE)
    ledger.stage("settled", uid(4), at=9 * MS, outcome="accepted", **_PLACE)
    ledger.file()
    return ledger


async def _told(look_up: LookUp) -> list[Trace]:
    try:
        return [await look_up.trace(str(uid(number))) for number in (1, 2, 3, 4)]
    finally:
        await look_up.stop()


def _shown(trace: Trace) -> str:
    console = Console(width=160, file=io.StringIO(), record=True)
    show(trace, console, every=False)
    return console.export_text().splitlines()[-2]


async def test_what_is_told(filed: LedgerFiles) -> None:
    """A copy that has not ended is not said to be lost, nor to wait: it may have gone on, which is not on file yet."""
    plain = await _told(LookUp(filed.folder))
    fates = [each.journeys[0].messages[0].copies[0].fate for each in plain]
    assert fates == ["lost", "lost (transient)", "waiting", ""]
    troubled = await _told(LookUp(filed.folder, trouble=lambda: "a full disk"))
    assert [_shown(each) for each in troubled] == [
        "unknown: routed in queue 'q'; what became of it then is not on record",
        "unknown: dropped in queue 'q' (no_owner); what became of it then is not on record",
        "unknown: enqueued in queue 'q'; what became of it then is not on record",
        "ended: accepted in queue 'q'",
    ]


async def test_trouble_that_ends_meanwhile(filed: LedgerFiles) -> None:
    """What was looked up is from before."""
    troubles = iter(["a full disk", ""])
    look_up = LookUp(filed.folder, trouble=lambda: next(troubles))
    told = await look_up.trace(str(uid(1)))
    await look_up.stop()
    assert (told.trouble, told.journeys[0].messages[0].copies[0].fate) == ("a full disk", "unknown")
