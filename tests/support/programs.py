"""Small real programs for the supervisor: Python one-liners that say in a folder what happens to them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from services.supervisor.program import Program

_SERVING = """
import os, pathlib, signal, sys, time
from services.supervisor.parent import die_with_parent
die_with_parent()
home, name = pathlib.Path(sys.argv[1]), sys.argv[2]
def note(what):
    with open(home / "notes", "a") as notes:
        notes.write(f"{name} {what}\\n")
def end(number, frame):
    note("stops")
    (home / name).unlink(missing_ok=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if "deaf" in sys.argv else end)
print("hello from", name, file=sys.stderr)
note("starts")
whole = home / f".{name}"
whole.write_text(str(os.getpid()))
whole.rename(home / name)  # whoever sees it can read it
while True:
    time.sleep(0.01)
"""


def serving(home: Path, name: str, *flags: str) -> Program:
    """Serves (its file is in `home`) until SIGTERM; with the flag "deaf" not even then."""
    return Program(name, (sys.executable, "-c", _SERVING, str(home), name, *flags), str(home / name))


def failing(home: Path, name: str, status: int | str = 3) -> Program:
    """Ends at once, with a status or with last words."""
    code = f"import sys; open({str(home / 'notes')!r}, 'a').write('{name} fails\\n'); sys.exit({status!r})"
    return Program(name, (sys.executable, "-c", code), str(home / name))


def killed(home: Path, name: str) -> Program:
    """Gets kill -9 at once."""
    command = f"echo {name} starts >> '{home / 'notes'}'; kill -9 $$"
    return Program(name, ("sh", "-c", command), str(home / name))


async def is_serving(address: str) -> bool:
    """What stands for a health check: the program's file exists."""
    return Path(address).exists()  # noqa: ASYNC240 - a moment, in a test


def notes(home: Path) -> list[str]:
    """What happened, in order."""
    path = home / "notes"
    return path.read_text().splitlines() if path.exists() else []


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Waits until `condition` holds; raises TimeoutError when it does not come true."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
