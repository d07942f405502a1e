from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from services.supervisor.parent import PARENT_VARIABLE
from tests.support.programs import serving, until

_PARENT = """
import os, subprocess, sys, time
subprocess.Popen(sys.argv[1:], env={**os.environ, "%s": str(os.getpid())})
time.sleep(60)
"""


async def test_children_die_with_a_killed_supervisor(tmp_path: Path) -> None:
    """When the supervisor gets kill -9, its children are gone too."""
    child = serving(tmp_path, "child", "deaf")
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", _PARENT % PARENT_VARIABLE, *child.command)
    await until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    pid = int((tmp_path / "child").read_text())
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    await until(lambda: _is_dead(pid), 5)


async def test_orphan_does_not_begin(tmp_path: Path) -> None:
    """A child whose supervisor died before it could ask to die with it ends by itself."""
    child = serving(tmp_path, "child")
    environment = {**os.environ, PARENT_VARIABLE: "1"}
    process = await asyncio.create_subprocess_exec(*child.command, env=environment)
    assert await asyncio.wait_for(process.wait(), 10) == 1
    assert not (tmp_path / "child").exists()


def _is_dead(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        # There may be no parent to reap it: a zombie is dead enough.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True
