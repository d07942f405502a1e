"""`python -m benchmarks.ledger`: how long it takes to find a message of the last day."""

from __future__ import annotations

import asyncio
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from benchmarks.ledger.generate import generate, message_id
from services.common.uid import SEQUENCE_BITS
from services.mgmt.lookup.lookup import LookUp

_AT_ONCE = 16

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    rows: Annotated[int, typer.Option(help="Of the table `stages`.")] = 100_000_000,
    questions: Annotated[int, typer.Option(help="Messages that are looked up: by id, by uid, 16 at once.")] = 50,
    keep: Annotated[Path | None, typer.Option(help="Folder to leave the files in, or to find them in.")] = None,
) -> None:
    """Files a day of rows (about 20 bytes each on disk), looks messages of it up, and says how long each took."""
    folder = keep or Path(tempfile.mkdtemp(prefix="ledger-"))
    try:
        if not (folder / "stages").exists():
            started = time.monotonic()
            generate(folder, rows)
            typer.echo(f"filed {rows:,} rows in {time.monotonic() - started:.0f} s")
        asyncio.run(_measure(folder, rows, questions))
    finally:
        if not keep:
            shutil.rmtree(folder)


async def _measure(folder: Path, rows: int, questions: int) -> None:
    # Batches have 2.5 messages and 8 rows, of two origins; what waits for hours may not have ended.
    newest = rows * 2.5 / 8 / 2 * 0.99
    uids = [(1 << SEQUENCE_BITS) + random.randrange(1, int(newest)) for _ in range(questions)]
    look_up = LookUp(folder)
    _report("first", [await _cost(look_up, message_id(uids[0]))])
    _report("by message id", [await _cost(look_up, message_id(uid)) for uid in uids])
    _report("by uid", [await _cost(look_up, str(uid)) for uid in uids])
    _report(
        f"{_AT_ONCE} at once", await _together(look_up, [message_id(uid) for uid in random.sample(uids, len(uids))])
    )
    await look_up.stop()


class _Cost(NamedTuple):
    elapsed: float  # seconds
    cpu: float  # of all threads; what elapses on a machine that does nothing else is less


async def _cost(look_up: LookUp, asked: str) -> _Cost:
    started, used = time.monotonic(), time.process_time()
    trace = await look_up.trace(asked)
    assert len(trace.journeys[0].messages[0].steps) >= 5, "a message of the day is found"
    return _Cost(time.monotonic() - started, time.process_time() - used)


async def _together(look_up: LookUp, asked: list[str]) -> list[_Cost]:
    """Each who asks asks again as soon as it is answered; the processor's time is shared out."""
    left, elapsed, used = iter(asked), list[float](), time.process_time()

    async def ask() -> None:
        for each in left:
            elapsed.append((await _cost(look_up, each)).elapsed)

    await asyncio.gather(*(ask() for _ in range(_AT_ONCE)))
    each_used = (time.process_time() - used) / len(asked)
    return [_Cost(seconds, each_used) for seconds in elapsed]


def _report(what: str, costs: list[_Cost]) -> None:
    elapsed, cpu = zip(*costs, strict=True)
    longest = sorted(elapsed)
    figures = (statistics.median(elapsed), longest[len(longest) * 95 // 100], longest[-1], statistics.median(cpu))
    median, p95, slowest, used = (f"{seconds * 1000:.0f} ms" for seconds in figures)
    typer.echo(f"{what:<14} median {median}, p95 {p95}, slowest {slowest}, processor {used}")


app()
