"""Which gateways there are, read from the records of the routers' watchers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from services.common.watchers import RECORD_KIND, SILENT_KIND
from services.queue.links.gateways import Gateways
from services.rpc.store_pb2 import Record, Records


def _record(origin: int, *, role: str = "gateway", kind: str = RECORD_KIND, deleted: bool = False) -> Record:
    value = json.dumps({"member": f"{role}-{origin}", "role": role, "connections": f"{origin}."}).encode()
    return Record(kind=kind, key=f"{role}-{origin}", value=b"" if deleted else value, deleted=deleted)


async def _follow(gateways: Gateways, *messages: Records) -> None:
    async def watch() -> AsyncIterator[Records]:
        for message in messages:
            yield message

    await gateways.follow(watch())


async def test_before_anything_is_known() -> None:
    """There may be others until a whole snapshot has come, which may have several messages."""
    gateways = Gateways()
    assert gateways.has_others({1, 2})
    await _follow(gateways, Records(records=[_record(1)], snapshot=True))
    assert gateways.has_others({1, 2})
    parts = Records(records=[_record(1)], snapshot=True), Records(records=[_record(2)], snapshot=True, last=True)
    await _follow(gateways, *parts)
    assert not gateways.has_others({1, 2})
    assert gateways.has_others({1})


async def test_what_is_no_gateway() -> None:
    """Queue processes and routers have no clients; a record that cannot be read is named, and the others count."""
    gateways = Gateways()
    unreadable = Record(kind=RECORD_KIND, key="x", value=b"{")
    records = [unreadable, _record(3, role="queue"), _record(4, role="router"), _record(1)]
    await _follow(gateways, Records(records=records, snapshot=True, last=True))
    assert gateways.has_others(())
    assert not gateways.has_others({1})


async def test_one_that_stays_on_record_as_silent() -> None:
    """It is waited for as long as one may be, and no longer: the router that takes it off the record may be away."""
    now = 0.0
    gateways = Gateways(lambda: now)
    whole = Records(records=[_record(1, kind=SILENT_KIND)], snapshot=True, last=True)
    await _follow(gateways, whole)
    now = 9.0
    await _follow(gateways, whole)  # the watch begins anew
    assert gateways.has_others(())
    now = 10.0
    assert not gateways.has_others(())


async def test_one_that_comes_and_goes() -> None:
    """It is there while it has a place, or is on record as silent; a new snapshot says it all anew."""
    gateways = Gateways()
    await _follow(gateways, Records(snapshot=True, last=True), Records(records=[_record(1)]))
    assert gateways.has_others(())
    falls_silent = [_record(1, deleted=True), _record(1, kind=SILENT_KIND)]
    await _follow(gateways, Records(snapshot=True, last=True), Records(records=falls_silent))
    assert gateways.has_others(())
    over = Records(records=[_record(1, kind=SILENT_KIND, deleted=True)])
    await _follow(gateways, Records(records=falls_silent, snapshot=True, last=True), over)
    assert not gateways.has_others(())


async def test_whether_all_are_here() -> None:
    """Not before it is known, nor while one is on record that is not here, nor for half a minute after one was lost."""
    now = 0.0
    gateways = Gateways(lambda: now)
    assert not gateways.are_all_among({1, 2})
    whole = Records(records=[_record(1), _record(2, kind=SILENT_KIND)], snapshot=True, last=True)
    await _follow(gateways, whole)
    now = 20.0  # for so long none waits for one that is silent, but it may come again
    assert gateways.are_all_among({1, 2})
    assert not gateways.are_all_among({1})
    await _follow(gateways, Records(records=[_record(1)], snapshot=True, last=True))
    now = 49.0
    assert not gateways.are_all_among({1})
    now = 50.0
    assert gateways.are_all_among({1})
