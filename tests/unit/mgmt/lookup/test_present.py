"""What is said of messages that the record does not tell of yet, by what the broker says as it runs."""

from __future__ import annotations

import io
from collections.abc import Collection

from rich.console import Console

from services.cli.trace import show
from services.common.trace import Copy, Trace
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.lookup.present import Present
from tests.support.ledger_files import MS, LedgerFiles, uid

_PLACE = {"queue": "q", "partition": 1, "epoch": 1}


def _filed(ledger: LedgerFiles) -> None:
    """Messages that go on: in memory, on disk, on disk and sent; and one that has ended."""
    ledger.stage("received", (uid(1), uid(4)))
    ledger.stage("enqueued", (uid(1), uid(4)), at=MS, **_PLACE)
    ledger.stage("persisted", (uid(2), uid(3)), at=2 * MS, **_PLACE)
    ledger.stage("delivered", (uid(3), uid(4)), at=3 * MS, **_PLACE)
    ledger.stage("settled", uid(4), at=4 * MS, outcome="accepted", **_PLACE)
    ledger.file()


async def _told(ledger: LedgerFiles, present: Present, *numbers: int) -> list[Trace]:
    look_up = LookUp(ledger.folder, present=present)
    try:
        return [await look_up.trace(str(uid(number))) for number in numbers]
    finally:
        await look_up.stop()


def _copy(trace: Trace) -> Copy:
    return trace.journeys[0].messages[0].copies[0]


async def test_an_owner_that_does_not_answer(ledger: LedgerFiles) -> None:
    """What it has in memory, or a consumer had, is unknown before its death is on record; what is on disk waits."""
    _filed(ledger)
    asked: list[Collection[str]] = []

    async def silent(instances: Collection[str]) -> Collection[str]:
        asked.append(instances)
        return instances

    told = await _told(ledger, Present(silent=silent), 1, 2, 3, 4)
    fates = [(_copy(trace).fate, _copy(trace).silent) for trace in told]
    assert fates == [("unknown", "queue-1"), ("waiting", ""), ("unknown", "queue-1"), ("", "")]
    assert asked == [{"queue-1"}] * 3
    console = Console(width=160, file=io.StringIO(), record=True)
    show(told[0], console, every=False)
    end = "unknown: enqueued in queue 'q'; queue-1, which had it, does not answer at the moment"
    assert console.export_text().splitlines()[-1] == end


async def test_an_owner_that_answers(ledger: LedgerFiles) -> None:
    """What is on record is what is so."""
    _filed(ledger)
    assert [_copy(trace).fate for trace in await _told(ledger, Present(), 1, 2, 3)] == [
        "waiting",
        "waiting",
        "unsettled",
    ]


async def test_the_bus_is_away(ledger: LedgerFiles) -> None:
    """Of what goes on, or is not on record, it is said at once that nothing can be told; what has ended needs none."""
    _filed(ledger)
    asked: list[str] = []

    async def trouble() -> str:
        asked.append("")
        return "NATS is away"

    waiting, ended, missing = await _told(ledger, Present(trouble), 1, 4, 9)
    assert (waiting.trouble, _copy(waiting).fate) == ("NATS is away", "unknown")
    assert (ended.trouble, missing.trouble, missing.journeys) == ("", "NATS is away", [])
    assert len(asked) == 2


async def test_a_gateway_that_died_just_now(ledger: LedgerFiles) -> None:
    """Where nothing is found, it is named: its death is on record later, and what it told last never will be."""
    _filed(ledger)
    none, found = await _told(ledger, Present(gone=lambda: {"gateway-2", "gateway-1"}), 9, 1)
    assert (none.gone, found.gone) == (["gateway-1", "gateway-2"], [])
