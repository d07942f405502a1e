"""`hopline trace --follow`: what the ledger is told of one queue, live."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from itertools import repeat
from math import inf

import structlog
from google.protobuf.message import DecodeError
from rich.console import Console
from rich.text import Text

from services.common.bus.follow import follow
from services.common.cli.durations import moment
from services.common.cli.steps import COLOURS
from services.common.clock import monotonic
from services.common.errors import BrokerError
from services.common.ledger.reading import Told, rows_of
from services.common.ledger.stages import NAMES
from services.common.ledger.stream import SUBJECTS
from services.common.message import format_named
from services.common.printable import printable
from services.rpc.ledger_pb2 import Identified, LedgerBatch

_REMEMBERED = 10_000  # ids of messages, some of which are told of later
_SHOWN = 3  # ids in a line
_HELD = 1.0  # seconds in which what belongs together comes from all services

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Line:
    """A batch of messages at a stage."""

    time_us: int
    stage: str
    service: str
    instance: str
    queue: str
    partition: int
    epoch: int
    consumer: str
    attempt: int
    outcome: str
    reason: str
    count: int
    uids: list[tuple[int, int]]
    number: int  # of the row in the instance


class Following:
    """Picks a queue's lines out of batches, and remembers which ids messages have."""

    def __init__(self, virtual_host: str, queue: str) -> None:
        self._virtual_host = virtual_host
        self._queue = queue
        self._ids: OrderedDict[int, str] = OrderedDict()

    def lines(self, payload: bytes) -> Iterator[Line]:
        """Those of a batch; raises DecodeError, IndexError or ValueError for what is none."""
        batch = LedgerBatch.FromString(payload)
        for identified in batch.identified:
            with suppress(BrokerError):  # names are a help, no more
                self._remember(identified)
        for told in rows_of(batch):
            if (told.place.virtual_host, told.place.queue) == (self._virtual_host, self._queue):
                yield self._line(batch, told)

    def ids_of(self, line: Line) -> list[str]:
        """What is known by now of what its messages are called."""
        if not self._ids:
            return []
        each = (uid for first, last in line.uids for uid in range(first, last + 1))
        return [self._ids[uid] for uid in each if uid in self._ids]

    def _line(self, batch: LedgerBatch, told: Told) -> Line:
        row, place, uids = told
        return Line(
            time_us=batch.times_us[row],
            stage=NAMES[batch.stages[row]] if batch.stages[row] < len(NAMES) else str(batch.stages[row]),
            service=batch.service,
            instance=batch.instance,
            queue=place.queue,
            partition=place.partition,
            epoch=place.epoch,
            consumer=place.consumer,
            attempt=place.attempt,
            outcome=batch.words[batch.outcome[row]],
            reason=batch.words[batch.reason[row]],
            count=sum(last - first + 1 for first, last in uids),
            uids=uids,
            number=batch.first_row + row,
        )

    def _remember(self, identified: Identified) -> None:
        format_ = format_named(identified.format)
        properties = identified.properties
        each = repeat(properties[0]) if len(properties) == 1 else properties
        for uid, its in zip(identified.uids, each, strict=False):
            names = dict(format_.identities(its))
            if name := names.get("message_id") or names.get("correlation_id"):
                self._ids[uid] = name
        while len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)


async def show(address: str, following: Following, console: Console, *, as_json: bool) -> None:
    """Writes a line for each batch at each stage, for ever. Raises Unavailable when NATS is away at first.

    Services tell their rows a few times a second, each its own: lines wait until they can be sorted by time.
    """
    held: list[Line] = []
    batches = _batches(address)
    batch = asyncio.ensure_future(anext(batches, None))
    due = inf
    try:
        while True:
            await asyncio.wait({batch}, timeout=None if due == inf else max(due - monotonic(), 0))
            if batch.done():
                if (payload := batch.result()) is None:
                    break
                held += _lines(following, payload)
                due = min(due, monotonic() + _HELD) if held else inf
                batch = asyncio.ensure_future(anext(batches, None))
            if monotonic() >= due:
                _write(held, following, console, as_json=as_json)
                held, due = [], inf
        _write(held, following, console, as_json=as_json)
    finally:
        # Not left to the end of the loop, which cancels the tasks of the NATS client too: it waits for them.
        batch.cancel()
        await asyncio.gather(batch, return_exceptions=True)
        await batches.aclose()


async def _batches(address: str) -> AsyncGenerator[bytes, None]:
    async with aclosing(follow(address, SUBJECTS)) as told:
        async for one in told:
            yield one.payload


def _lines(following: Following, payload: bytes) -> list[Line]:
    try:
        return list(following.lines(payload))
    except (DecodeError, IndexError, ValueError) as error:  # of a newer Hopline
        log.warning("a batch of the ledger cannot be read", reason=str(error))
        return []


def _write(lines: list[Line], following: Following, console: Console, *, as_json: bool) -> None:
    for line in sorted(lines, key=lambda line: (line.time_us, line.number)):
        ids = following.ids_of(line)
        if as_json:
            console.out(json.dumps({**asdict(line), "ids": ids}), highlight=False)
        else:
            console.print(text(line, ids), soft_wrap=True)


def text(line: Line, ids: list[str]) -> Text:
    """When, which stage, of which messages, how or why, and who says so."""
    uids = str(line.uids[0][0]) if line.count == 1 else f"{line.uids[0][0]} and {line.count - 1} more"
    words = [line.outcome, line.reason, "again" if line.attempt > 1 else ""]
    words.append(f"consumer {line.consumer}" if line.consumer else "")
    how = ", ".join(word for word in words if word)
    return Text.assemble(
        (moment(line.time_us)[11:-3], "dim"),
        "  ",
        (f"{line.stage:<13}", COLOURS.get(line.stage, "")),
        f"  {uids}",
        (f"  {printable(_ids(ids))}" if ids else "", "bold"),
        f"  {printable(how)}" if how else "",
        (f"  {printable(line.instance)}", "dim"),
    )


def _ids(ids: list[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return " ".join(ids[:_SHOWN]) + more
