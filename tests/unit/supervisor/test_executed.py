from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from services.supervisor.executed import execute
from services.supervisor.program import Program

ROOT = Path(__file__).parents[3]

# In a process of its own: what is to run before a fork cannot be taken back.
_COUNT_FORKS = """
import ctypes, sys, uvloop
from services.supervisor.executed import execute
from services.supervisor.program import Program
forks = []
prepare = ctypes.CFUNCTYPE(None)(lambda: forks.append(1))
assert ctypes.CDLL(None).__register_atfork(prepare, None, None, None) == 0
async def main():
    process = await execute(Program("one", (sys.executable, "-c", "print('said')"), ""), {})
    said = await process.stdout.read()
    print(said, await process.wait(), len(forks))
uvloop.run(main())
"""
_COUNT_THREADS = """
import os
from services.__main__ import _import_services
_import_services()
print(len(os.listdir("/proc/self/task")))
"""


def _python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def _shell(command: str) -> Program:
    return Program("one", ("sh", "-c", command), "")


def test_nothing_is_forked() -> None:
    """The supervisor, in which gRPC's threads run, executes a program without a fork: none of the handlers runs."""
    assert _python(_COUNT_FORKS) == "b'said\\n' 0 0"


def test_the_fork_server_has_one_thread() -> None:
    """What services are forked from has imported all of them, gRPC too, and nothing has begun a thread."""
    assert _python(_COUNT_THREADS) == "1"


async def test_what_it_says_and_how_it_ends() -> None:
    """Both outputs are one, there is nothing to read, the environment is the one that was given."""
    process = await execute(_shell("cat; echo $TOLD; echo wrong >&2; exit 3"), {"TOLD": "this"})
    assert await process.stdout.read() == b"this\nwrong\n"
    assert await process.wait() == process.returncode == 3


async def test_signals() -> None:
    """It is told signals, and by which it was killed; once it has ended, nothing happens."""
    process = await execute(_shell("exec sleep 3600"), {})
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGTERM
    process.send_signal(signal.SIGTERM)


async def test_no_such_program() -> None:
    """What cannot be executed is an OSError."""
    with pytest.raises(FileNotFoundError):
        await execute(Program("one", ("/nowhere/at/all",), ""), {})
