"""A supervisor that forks, as a program of its own: a process that forks must have started nothing yet, and a test has.

Run as `python -m tests.support.forking FOLDER`. It starts programs one after the other as lines on its standard input
name them, with these lines as their arguments, and writes a JSON object about each when it has ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import uvloop

from services.common import log
from services.supervisor.forks import Forks
from services.supervisor.parent import PARENT_VARIABLE, die_with_parent
from services.supervisor.process import Process
from services.supervisor.program import Program

EXECUTED = (sys.executable, "-c", "print('executed')")
TOLD = {"TOLD": "this", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
prepared: list[int] = []
lineage: list[int] = []
"""The supervisor, the fork server, and the process that ends at once."""


def prepare() -> None:
    prepared.append(os.getpid())
    os.register_at_fork(before=lambda: lineage.append(os.getpid()))


def run(arguments: list[str]) -> None:
    """What a forked program does."""
    die_with_parent()
    what, *rest = arguments
    if what == "look":
        json.dump(_seen(), sys.stdout)
    elif what == "exit":
        sys.exit(int(rest[0]))
    else:
        (Path(sys.argv[2]) / "sleeper").write_text(f"{os.getpid()} {lineage[1]}")
        time.sleep(60)


def _seen() -> dict[str, object]:
    return {
        "argv": sys.argv,
        "title": Path("/proc/self/cmdline").read_text().rstrip("\0"),
        "shown": Path("/proc/self/environ").read_text().strip("\0"),
        "environment": dict(os.environ),
        "descriptors": [str(path.readlink()) for path in sorted(Path("/proc/self/fd").iterdir()) if path.exists()],
        "session": os.getsid(0) == os.getpid(),
        "parent": os.getppid(),
        "prepared": prepared != [os.getpid()],
        "input": sys.stdin.read(),
    }


async def _one(forks: Forks, arguments: list[str]) -> None:
    program = Program("one", EXECUTED, "", arguments=tuple(arguments))
    opened = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as good, where a loop runs
    process: Process = await forks.start(program, {**TOLD, PARENT_VARIABLE: str(os.getpid())})
    said = (await process.stdout.read()).decode()
    status = await process.wait()
    sys.stdout.write(json.dumps({"said": said, "status": status, "pid": process.pid, "opened": opened}) + "\n")
    sys.stdout.flush()


async def _main(forks: Forks) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        await _one(forks, line.split())


if __name__ == "__main__":
    begun = Forks.begin(prepare, run)
    log.configure("supervisor", "console", "info")
    uvloop.run(_main(begun))
    begun.end()
