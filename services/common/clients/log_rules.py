"""The rules of what is logged, followed: this process heeds them from the moment at which they are set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from services.common import log
from services.common.clients.store import StoreClient
from services.common.log_rules import ALL, RECORD_KIND, ROOT, LogRule, level_of, of_settings, readable
from services.rpc.store_pb2 import Record, Records


async def follow(address: str, service: str, level: str) -> None:
    """Has this process log as the rules say, from now on; `address` is the store's, `level` of the settings."""
    store = StoreClient(address)
    try:
        await apply(store.watch_records([RECORD_KIND]), service.partition("-")[0], level)
    finally:
        await store.close()


async def apply(records: AsyncIterator[Records], service: str, level: str) -> None:
    """The same of a watch; ends with it."""
    there: dict[str, LogRule] = {}
    fresh: dict[str, LogRule] = {}
    async for batch in records:
        _take(fresh if batch.snapshot else there, batch.records)
        if batch.snapshot and batch.last:
            there, fresh = fresh, {}
        if batch.last or not batch.snapshot:
            rules = {**of_settings(level), **there}.values()
            log.take_from(level_of((ALL, f"services.{service}.*"), rules), level_of((ROOT,), rules))


def _take(there: dict[str, LogRule], records: Iterable[Record]) -> None:
    for record in records:
        rule = None if record.deleted else readable(record.value)
        if rule is None:
            there.pop(record.key, None)
        else:
            there[record.key] = rule
