"""The rules of what is logged, followed: this process heeds them from the moment at which they are set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from services.common import log
from services.common.clients.store import StoreClient
from services.common.log_rules import KINDS, RECORD_KIND, LogRule, of_settings, readable
from services.rpc.store_pb2 import Record, Records

Rules = dict[tuple[str, str], LogRule]
"""By the kind of record and its key."""


async def follow(address: str, level: str) -> None:
    """Has this process log as the rules say, from now on; `address` is the store's, `level` of the settings."""
    store = StoreClient(address)
    try:
        await apply(store.watch_records(KINDS), level)
    finally:
        await store.close()


async def apply(records: AsyncIterator[Records], level: str) -> None:
    """The same of a watch; ends with it."""
    there: Rules = {}
    fresh: Rules = {}
    async for batch in records:
        _take(fresh if batch.snapshot else there, batch.records)
        if batch.snapshot and batch.last:
            there, fresh = fresh, {}
        if batch.last or not batch.snapshot:
            _heed(there, level)


def _take(there: Rules, records: Iterable[Record]) -> None:
    for record in records:
        rule = None if record.deleted else readable(record.value)
        if rule is None:
            there.pop((record.kind, record.key), None)
        else:
            there[record.kind, record.key] = rule


def _heed(there: Rules, level: str) -> None:
    own = {key: rule for (kind, key), rule in there.items() if kind == RECORD_KIND}
    beyond = [rule for (kind, _), rule in there.items() if kind != RECORD_KIND]
    log.heed({**of_settings(level), **own}.values(), beyond)
