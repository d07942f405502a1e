"""Filing leaves no memory behind: every ten seconds, for as long as mgmt runs, rows of every process become files.

An hour of a stack that did little took eighty megabytes. Here it is rounds that are counted, not time.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from services.common.clock import Epoch
from services.common.config import Settings
from services.common.heap import trim
from services.common.ledger.encoding import Sealed
from services.common.ledger.place import LedgerPlace
from services.common.ledger.row_recorder import RowRecorder
from services.mgmt.ledger.filer import Filer, _Session
from services.mgmt.ledger.instances import Instances
from services.rpc.ledger_pb2 import ENQUEUED, LedgerBatch

if TYPE_CHECKING:
    from services.mgmt.ledger.feed import Feed

INSTANCES: Final = ("gateway-1", "router-1", "queue-1", "queue-2")
HOUR: Final = 1_700_000_000_000_000 // 3_600_000_000 * 3_600_000_000
"""Microseconds of one that is over: its files are merged."""

BEFORE, THEN = 30, 120
"""Filings until all is there that is needed once; and twenty minutes' of them."""

EACH: Final = 6
"""Filings between two merges."""

MOST: Final = 5 << 20
"""Bytes that the allocators may differ by. What was left behind was as much in twenty filings."""


class Said(NamedTuple):
    """A message of the bus."""

    subject: str
    data: bytes


class Bus:
    """What the filer takes its batches from: each instance tells a few rows in each round."""

    def __init__(self) -> None:
        self._sealed: list[Sealed] = []
        self._recorders = [RowRecorder(name.split("-")[0], name, self._sealed.append) for name in INSTANCES]
        self._uid = 0

    async def next(self, _seconds: float) -> list[Said]:
        self._sealed.clear()
        for recorder in self._recorders:
            for number in range(10):
                self._uid += 1
                recorder.record(ENQUEUED, LedgerPlace("/", queue=f"q{number}"), [self._uid, self._uid + 1000])
            recorder.seal()
        return [Said("ledger.queue.one", _of_that_hour(each.payload)) for each in self._sealed]

    async def acknowledge(self, messages: Sequence[Any]) -> None: ...


def _of_that_hour(payload: bytes) -> bytes:
    batch = LedgerBatch.FromString(payload)
    batch.times_us[:] = [HOUR] * len(batch.times_us)
    return batch.SerializeToString()


class Store:
    """Is never asked: nobody else files."""

    address = ""


async def _round(filer: Filer, session: _Session, *, tidies: bool) -> None:
    await filer._receive(session, 0.1)
    await filer._file(session)
    while tidies and await filer._tidy():
        pass


def _kept() -> int:
    """Bytes of this process that are no file's."""
    gc.collect()
    trim()
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


async def _grown(folder: Path) -> int:
    filer = Filer(Settings(data=folder, ledger_days=36_500), Store(), "mgmt-1")  # type: ignore[arg-type]
    filer._lease.require = lambda: None  # type: ignore[method-assign]
    filer._pace.hurry()
    instances = Instances(filer._cabinet.open(), filer._cabinet.told)
    feed: Feed = Bus()  # type: ignore[assignment]
    session = _Session(feed, filer._drawer, instances, Epoch())
    before = 0
    for number in range(BEFORE + THEN):
        before = before if number != BEFORE else _kept()
        await _round(filer, session, tidies=number % EACH == EACH - 1)
    rows = filer._cabinet.told
    assert set(rows) == set(INSTANCES), rows
    return _kept() - before


def test_an_evening_of_filing(tmp_path: Path) -> None:
    """Asked of a process that does nothing else: what other tests had before decides what an allocator gives back."""
    command = [sys.executable, "-m", __name__, str(tmp_path)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < MOST


if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(_grown(Path(sys.argv[1])))}\n")
