"""How old the results of the stream are while a ledger is written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

from spark.generate.files import write
from spark.generate.plan import Plan

_SECONDS_OF_FILE = 5.0
_SECONDS_TO_START = 40.0


@dataclass(frozen=True, slots=True)
class Age:
    """A result: up to when it tells of the record, how long after that it came, how old it was when the next did."""

    batch: int
    record_end: str
    age: float
    seconds: float
    oldest: float


def measure(rate: float, seconds: float, batch: float, core: int, folder: Path) -> list[Age]:
    """Writes a ledger as time goes by, follows it on one core, and removes it."""
    home = folder / "stream"
    plan = Plan(
        rows=round(rate * seconds / batch * 9.9),
        batch=batch,
        rate=rate,
        batches_of_file=round(rate * _SECONDS_OF_FILE / batch),
    )
    try:
        begins = time.time() + plan.batches * batch / rate / 2 + _SECONDS_TO_START
        write(plan, str(home / "made"), int(begins * 1e6))
        (home / "ledger/stages").mkdir(parents=True)
        process = subprocess.Popen(_follow(home, core), stdout=subprocess.DEVNULL)
        try:
            return list(_aged(_watch(home, process)))
        finally:
            process.terminate()
            process.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _follow(home: Path, core: int) -> list[str]:
    places = ["--ledger", home / "ledger", "--out", home / "out", "--checkpoint", home / "checkpoint"]
    command = [sys.executable, "-m", "spark", "follow", *map(str, places), "--master", "local[1]"]
    return ["taskset", "--cpu-list", str(core), *command]


def _watch(home: Path, process: subprocess.Popen[bytes]) -> Iterator[tuple[float, dict[str, object]]]:
    """Each summary of the stream, and when it was there; files appear meanwhile, when their time has come."""
    waiting = [(_last_time(path), path) for path in sorted((home / "made").glob("stages/*/*/*.parquet"))]
    summary, seen, last = home / "out/stream/summary.json", -1, 0.0
    while waiting or time.time() < last + 3 * _SECONDS_OF_FILE:
        if process.poll() is not None:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        while waiting and waiting[0][0] <= time.time():
            last, path = waiting.pop(0)
            _show(path, home / "ledger" / path.relative_to(home / "made"))
        if summary.exists():
            said = json.loads(summary.read_text())
            if said["batch"] != seen:
                seen = said["batch"]
                yield time.time(), said
        time.sleep(0.1)


def _show(path: Path, there: Path) -> None:
    there.parent.mkdir(parents=True, exist_ok=True)
    path.rename(there)


def _last_time(path: Path) -> float:
    statistics = pq.ParquetFile(path).metadata
    groups = range(statistics.num_row_groups)
    latest = max(statistics.row_group(group).column(0).statistics.max for group in groups)
    return float(latest.timestamp())


def _aged(results: Iterator[tuple[float, dict[str, object]]]) -> Iterator[Age]:
    everything = list(results)
    for (_, said), (following, _) in pairwise(everything):
        end = datetime.fromisoformat(str(said["record_end"]))
        yield Age(
            int(str(said["batch"])), f"{end:%H:%M:%S}", float(str(said["age_seconds"])), float(str(said["seconds"])),
            following - end.timestamp(),
        )  # fmt: skip
