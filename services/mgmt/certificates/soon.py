"""Which certificates are soon over, or over already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

from services.common.config import Settings
from services.mgmt.certificates.details import days_until, details
from services.mgmt.certificates.kind import UNREADABLE, Named
from services.mgmt.certificates.of_settings import key_stores, trust_stores
from services.mgmt.certificates.stores import Kept
from services.rpc.store_pb2 import Record

_SOON: Final = 30  # days, as in Broker-J


def soon_over(settings: Settings, records: Iterable[Record]) -> list[str]:
    """A sentence for each, of the settings' files and of stores on record; waits for a disk."""
    return [
        f"{store}: {each['subjectName']} {_left(days)}"
        for store, read in _all(settings, records)
        for each in _details(read)
        if (days := days_until(each["validUntil"])) < _SOON
    ]


def _all(settings: Settings, records: Iterable[Record]) -> Iterator[tuple[str, Callable[[], Sequence[Named]]]]:
    for its in chain(key_stores(settings), trust_stores(settings)):
        yield its.attributes["file"], partial(tuple, its.certificates)
    for record in records:
        yield f"{record.kind.replace('_', ' ')} '{record.key}'", partial(_named, record)


def _named(record: Record) -> Sequence[Named]:
    return Kept.from_json(record.value).named()


def _details(read: Callable[[], Sequence[Named]]) -> list[dict[str, Any]]:
    """None of a store that cannot be read: it must not hide the others."""
    try:
        return [details(each) for each in read()]
    except UNREADABLE:
        return []


def _left(days: int) -> str:
    return "is over" if days < 0 else f"ends in {days} days"
