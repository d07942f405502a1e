"""A merge leaves no memory behind: hundreds of files are read for it, each with a footer of many small things."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from services.mgmt.ledger import parquet
from services.mgmt.ledger.cabinet import Cabinet
from services.mgmt.ledger.pace import no_rest
from services.mgmt.ledger.schema import STAGES
from services.mgmt.ledger.tidying import Limits, Tidying

FILES = 300
HOUR = Path("stages/date=1970-01-20/hour=16")
LATER = 1_000_000_000.0  # seconds
FOREVER = Limits(1e6, 1 << 40)
MOST = 6 << 20  # bytes: without being given back they are seven times that


def rows(number: int) -> pa.Table:
    """Of one file, with its own uids."""
    facts = [{"time": uid, "queue": f"q{uid % 7}", "first_uid": uid} for uid in range(number, 20_000, FILES)]
    return pa.Table.from_pylist([dict.fromkeys(STAGES.names) | each for each in facts], STAGES)


def merge(folder: Path, count: int) -> None:
    """Has that many files of an hour become one."""
    cabinet = Cabinet(folder)
    cabinet.open()
    (folder / HOUR).mkdir(parents=True)
    for number in range(count):
        parquet.write(rows(number), "stages", folder / HOUR / f"part-{number}.parquet", no_rest)
    tidying = Tidying(cabinet, FOREVER)
    while change := tidying.prepare(LATER):
        tidying.carry_out(change)
    (_,) = cabinet.files("stages")


def own_memory() -> int:
    """Bytes of this process that are no file's."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


def test_memory_is_given_back(tmp_path: Path) -> None:
    """Asked of a process that does nothing else: what other tests had before decides what an allocator gives back."""
    command = [sys.executable, "-m", __name__, str(tmp_path)]
    kept = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert kept < MOST


def measure(folder: Path) -> None:
    """Prints by how many bytes this process grew."""
    merge(folder / "first", 2)  # what the first of a kind takes for good
    before = own_memory()
    merge(folder / "many", FILES)
    sys.stdout.write(f"{own_memory() - before}\n")


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
