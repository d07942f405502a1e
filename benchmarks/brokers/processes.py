"""Processes of a broker: started in a group of their own, waited for, measured, ended as a group."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.failure import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

START_SECONDS = 90.0
STOP_SECONDS = 20.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def answers_well(port: int) -> bool:
    """Whether what serves HTTP there says that all is well, as Hopline and NATS do, by the same path."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def allow_many_files() -> None:
    """As many as this machine lets us, for us and for the brokers that are started from here on."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class ProcessGroup:
    """A command and all it starts."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Returns when `ready()`; raises BenchmarkError with the end of the log when it exits or takes too long."""
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                text = self._log.read_text(errors="replace")[-3000:]
                raise BenchmarkError(f"{self._process.args!r} did not become ready:\n{text}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Asks the command to end, then ends by force what is left of its group."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def descendants(root: int) -> list[int]:
    """`root` and every process below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                children.setdefault(_parent(entry), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def proportional_memory(pids: Sequence[int]) -> int:
    """Bytes of memory of the processes, shared pages divided among those that share them (PSS)."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024
    return total


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time that the processes have used so far, user and system."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            fields = _after_name(Path(f"/proc/{pid}"))
            total += int(fields[11]) + int(fields[12])
    return total / TICKS_PER_SECOND


def _parent(entry: Path) -> int:
    return int(_after_name(entry)[1])


def _after_name(entry: Path) -> list[str]:
    # The name, in parentheses, may itself hold blanks and parentheses.
    return (entry / "stat").read_text().rpartition(")")[2].split()
