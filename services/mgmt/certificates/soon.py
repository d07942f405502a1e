"""Which certificates are soon over, or over already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from services.common.config import Settings
from services.mgmt.certificates.details import days_until, details
from services.mgmt.certificates.kind import Named
from services.mgmt.certificates.of_settings import key_stores, trust_stores
from services.mgmt.certificates.stores import Kept
from services.rpc.store_pb2 import Record

_SOON: Final = 30  # days, as in Broker-J


def soon_over(settings: Settings, records: Iterable[Record]) -> list[str]:
    """A sentence for each, of the settings' files and of stores on record; waits for a disk."""
    return [
        f"{store}: {each['subjectName']} {_left(days)}"
        for store, found in _all(settings, records)
        for each in map(details, found)
        if (days := days_until(each["validUntil"])) < _SOON
    ]


def _all(settings: Settings, records: Iterable[Record]) -> Iterator[tuple[str, Sequence[Named]]]:
    for its in chain(key_stores(settings), trust_stores(settings)):
        yield its.attributes["file"], its.certificates
    for record in records:
        yield f"{record.kind.replace('_', ' ')} '{record.key}'", Kept.from_json(record.value).named()


def _left(days: int) -> str:
    return "is over" if days < 0 else f"ends in {days} days"
