"""`hopline trace --follow`: what the ledger is told of one queue, live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict
from math import inf

import structlog
from google.protobuf.message import DecodeError
from rich.console import Console
from rich.text import Text

from services.cli.durations import moment
from services.cli.following import Following, Line
from services.cli.steps import COLOURS, called
from services.common.bus.follow import follow
from services.common.clock import monotonic
from services.common.ledger.stream import SUBJECTS
from services.common.printable import printable

_SHOWN = 3  # ids in a line
_HELD = 1.0  # seconds in which what belongs together comes from all services
_DO = "use the `hopline` of the release that the stack runs"

log = structlog.get_logger()


async def show(
    address: str,
    following: Following,
    console: Console,
    *,
    as_json: bool,
    ready: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Writes a line for each batch at each stage, for ever. Raises Unavailable when NATS is away at first.

    Services tell their rows a few times a second, each its own: lines wait until they can be sorted by time. What comes
    before `ready` is over waits for it, unread.
    """
    held: list[Line] = []
    batches = _batches(address)
    batch = asyncio.ensure_future(anext(batches, None))
    due = inf
    try:
        if ready:
            await ready()
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
        log.warning("a batch of the ledger cannot be read", reason=str(error), do=_DO)
        return []


def _write(lines: list[Line], following: Following, console: Console, *, as_json: bool) -> None:
    fitting = (fits for line in lines if (fits := following.fitting(line)))
    for line in sorted(fitting, key=lambda line: (line.time_us, line.number)):
        ids = following.ids_of(line)
        if as_json:
            console.out(json.dumps({**asdict(line), "ids": ids}), highlight=False)
        else:
            console.print(text(line, ids), soft_wrap=True)


def text(line: Line, ids: list[str]) -> Text:
    """Time, stage, messages, outcome or reason, and the process that tells it."""
    uids = str(line.uids[0][0]) if line.count == 1 else f"{line.uids[0][0]} and {line.count - 1} more"
    stage = called(line.stage, line.reason)
    words = [line.outcome, "" if stage == line.reason else line.reason, "again" if line.attempt > 1 else ""]
    words.append(f"consumer {line.consumer}" if line.consumer else "")
    how = ", ".join(word for word in words if word)
    return Text.assemble(
        (moment(line.time_us)[11:-3], "dim"),
        "  ",
        (f"{stage:<13}", COLOURS.get(line.stage, "")),
        f"  {uids}",
        (f"  {printable(_ids(ids))}" if ids else "", "bold"),
        f"  {printable(how)}" if how else "",
        (f"  {printable(line.instance)}", "dim"),
    )


def _ids(ids: list[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return " ".join(ids[:_SHOWN]) + more
