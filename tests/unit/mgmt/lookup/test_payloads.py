from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.common.message import field_table
from services.mgmt.ledger.schema import PAYLOADS
from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import HOUR, MS, NOON, LedgerFiles, uid
from tests.support.ledger_schema import plain

# content-type, headers, message-id
PROPERTIES = b"\xa0\x80" + b"\x0atext/plain" + field_table.encode({"a": 1, "raw": b"\xff"}) + b"\x02m1"


def _captured(one: int, at: int = 0, **facts: Any) -> dict[str, Any]:
    texts = {name: "" for name, kind in zip(PAYLOADS.names, plain(PAYLOADS).types, strict=True) if kind == pa.string()}
    told = {"uid": one, "time": NOON + at, "stage": "received", "rule": "r", "format": "amqp-0-9", "size": 4}
    return {**texts, **told, "properties": PROPERTIES, "body": b"body", **facts}


def _file(ledger: LedgerFiles, *rows: dict[str, Any]) -> None:
    for number, row in enumerate(rows):
        hour = datetime.fromtimestamp(row["time"] // HOUR * 3600, UTC)
        folder = ledger.folder / "payloads" / f"{hour:date=%Y-%m-%d/hour=%H}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row], plain(PAYLOADS)), folder / f"{number}.parquet")


async def test_properties_and_bodies(ledger: LedgerFiles, look_up: LookUp) -> None:
    """Each time that a message was captured is told by time: properties in words, the body in base64 and as text."""
    ledger.stage("received", uid(1))
    ledger.stage("sent", uid(1), at=HOUR, queue="q")
    ledger.file()
    sent = _captured(uid(1), at=HOUR, stage="sent", queue="q", body=b"\xff", size=100)
    _file(ledger, sent, _captured(uid(1), at=MS), _captured(uid(2)))
    [journey] = (await look_up.trace(str(uid(1)), payloads=True)).journeys
    first, second = journey.messages[0].payloads
    assert (first.stage, first.text, first.size, first.kept, first.rule) == ("received", "body", 4, 4, "r")
    assert base64.b64decode(first.body) == b"body"
    headers = {"a": 1, "raw": {"!bytes": "/w=="}}
    assert first.properties == {"content-type": "text/plain", "message-id": "m1", "headers": headers}
    assert (second.stage, second.queue, second.text, second.size, second.kept) == ("sent", "q", None, 100, 1)


async def test_only_where_they_are_asked_for(ledger: LedgerFiles, look_up: LookUp) -> None:
    """A look-up without that says nothing of what is in a message."""
    ledger.stage("received", uid(1))
    ledger.file()
    _file(ledger, _captured(uid(1)))
    [journey] = (await look_up.trace(str(uid(1)))).journeys
    assert not journey.messages[0].payloads


@pytest.mark.parametrize("facts", [{"properties": b"\xff\xff\xff"}, {"format": "none-such"}])
async def test_properties_that_cannot_be_read(ledger: LedgerFiles, look_up: LookUp, facts: dict[str, Any]) -> None:
    """They say nothing; the body is told all the same."""
    ledger.stage("received", uid(1))
    ledger.file()
    _file(ledger, _captured(uid(1), **facts))
    [journey] = (await look_up.trace(str(uid(1)), payloads=True)).journeys
    [payload] = journey.messages[0].payloads
    assert (payload.properties, payload.text) == ({}, "body")
