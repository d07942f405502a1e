"""Rules that operators set while gateways run: records of one kind, followed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import structlog
from pydantic import ValidationError

from services.rpc.store_pb2 import Record, Records

log = structlog.get_logger()

_R = TypeVar("_R")


async def followed(records: AsyncIterator[Records], read: Callable[[bytes], _R], what: str) -> AsyncIterator[list[_R]]:
    """The rules that there are, whenever that changes; ends with the watch.

    `read` gives a rule, or raises ValidationError: then the log names it, and `what` it would have been for.
    """
    rules: dict[str, _R] = {}
    fresh: dict[str, _R] = {}
    async for batch in records:
        for record in batch.records:
            _apply(record, fresh if batch.snapshot else rules, read, what)
        if batch.snapshot and batch.last:
            rules, fresh = fresh, {}
        if batch.last or not batch.snapshot:
            yield list(rules.values())


def _apply(record: Record, rules: dict[str, _R], read: Callable[[bytes], _R], what: str) -> None:
    if record.deleted:
        rules.pop(record.key, None)
        return
    try:
        rules[record.key] = read(record.value)
    except ValidationError:
        do = f"set it again, or remove it: hopline {what}"
        log.warning("a rule is not understood and not followed", rule=record.key, what=what, do=do)
