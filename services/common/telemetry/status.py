"""The state of each process's spans, as transient records of kind `tracing_status`: for `hopline tracing`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog
from pydantic import BaseModel, ConfigDict

from services.common.clock import epoch_ms
from services.common.errors import BrokerError
from services.common.telemetry.tracer import Tracer
from services.rpc.store_pb2 import Record

RECORD_KIND = "tracing_status"

_EVERY = 2.0  # seconds between records while the counts change

log = structlog.get_logger()

Put = Callable[[Sequence[Record], Sequence[Record]], Awaitable[int]]  # puts, deletes


class Status(BaseModel):
    """One process; the record's key is the instance, its value this as JSON."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    service: str
    instance: str
    time_ms: int
    on: bool
    ended: int
    exported: int
    dropped: int
    untraced: int


async def report(tracer: Tracer, service: str, instance: str, put: Put) -> None:
    """Writes the record at once, and when the counts have changed, until it is cancelled; then deletes the record."""
    told: dict[str, int] = {}
    try:
        while True:
            tracer.busy.clear()
            counts = tracer.counts
            if counts != told and await _put(put, _record(tracer, service, instance, counts)):
                told = counts
            # An idle process sleeps, once all of its spans are accounted for and the record says so.
            if told == counts and counts["ended"] == counts["exported"] + counts["dropped"]:
                await tracer.busy.wait()
            await asyncio.sleep(_EVERY)
    finally:
        await _delete(put, instance)


def _record(tracer: Tracer, service: str, instance: str, counts: dict[str, int]) -> Record:
    status = Status(service=service, instance=instance, time_ms=epoch_ms(), on=tracer.on, **counts)
    return Record(kind=RECORD_KIND, key=instance, value=status.model_dump_json().encode(), transient=True)


async def _put(put: Put, record: Record) -> bool:
    try:
        await put([record], [])
    except BrokerError as error:
        log.debug("status of spans not told", reason=error.text)
        return False
    return True


async def _delete(put: Put, instance: str) -> None:
    """Deletes the record, without waiting long: where the store stops too, its transient records go with it."""
    try:
        async with asyncio.timeout(0.2):
            await put([], [Record(kind=RECORD_KIND, key=instance)])
    except (BrokerError, TimeoutError) as error:
        log.debug("status of spans not deleted", reason=repr(error))
