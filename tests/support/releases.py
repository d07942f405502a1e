"""A stack of processes one by one, each of a release of its own: that of another revision, or this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.interop_address import BrokerAddress
from tests.support.ports import free_port
from tests.support.stack import HOST, wait_until

_ROOT = Path(__file__).parents[2]
_STOP_SECONDS = 30
_START_SECONDS = 60
_KEPT = "tests/support/contracts/*.textproto"  # written with the last release

PROCESSES = (
    ("store", "store"),
    ("router-1", "router", "--name", "router-1"),
    ("router-2", "router", "--name", "router-2"),
    ("queue-1", "queue", "--name", "queue-1"),
    ("queue-2", "queue", "--name", "queue-2"),
    ("mgmt", "mgmt"),
    ("gateway", "gateway"),
)


def last_release() -> str:
    """The revision at which its contracts were kept; wants the history of this repository."""
    return _git("log", "-1", "--format=%H", "--", _KEPT).decode().strip()


def installed(revision: str, folder: Path) -> Path:
    """What Hopline was at `revision`, without what it depends on: a folder for PYTHONPATH."""
    source, target = folder / "source", folder / "release"
    source.mkdir()
    subprocess.run(["tar", "--extract", "--directory", source], input=_git("archive", revision), check=True)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target")
    subprocess.run([*pip, target, source], check=True)
    return target


class MixedStack:
    """Processes by name. `releases` are folders by the names that they are given here; "" is this one."""

    def __init__(self, data: Path, releases: dict[str, Path], more: Mapping[str, str]) -> None:
        self._more = more
        self.address = BrokerAddress(HOST, free_port())
        self._data = data
        self._releases = releases
        self._log = data.with_name("stack.log")
        self._nats = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start_all(self, release: str) -> None:
        self._data.mkdir(mode=0o700)
        self._run(("nats", "nats", "--host", HOST, "--port", str(self._nats)), release)
        for process in PROCESSES:
            self._run(process, release)
        wait_until(self._accepts, _START_SECONDS, "gateway")

    def replace(self, name: str, release: str) -> None:
        """Ends one in good order, and starts the same of a release."""
        [process] = (each for each in PROCESSES if each[0] == name)
        ended = self._processes.pop(name)
        ended.send_signal(signal.SIGTERM)
        assert ended.wait(_STOP_SECONDS) == 0, self.log_tail()
        self._run(process, release)

    def kill_all(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-8000:]

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def _run(self, process: tuple[str, ...], release: str) -> None:
        name, *arguments = process
        path = {"PYTHONPATH": str(self._releases[release])} if release else {}
        command = [sys.executable, "-P", "-m", "services", *arguments]
        with self._log.open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command, env={**os.environ, **self._settings(), **path}, stdout=output, stderr=subprocess.STDOUT
            )

    def _accepts(self) -> bool:
        ended = [name for name, process in self._processes.items() if process.poll() is not None]
        assert not ended, f"{ended} ended\n{self.log_tail()}"
        return self.address.port in _listening()

    def _settings(self) -> dict[str, str]:
        return {
            "HOPLINE_DATA": str(self._data),
            "HOPLINE_AMQP_HOST": HOST,
            "HOPLINE_AMQP_PORT": str(self.address.port),
            "HOPLINE_HTTP_PORT": "0",
            "HOPLINE_NATS_URL": f"nats://{HOST}:{self._nats}",
            "HOPLINE_SECRET_FILE": str(self._data / "stack-secret"),
            **self._more,
        }


@contextmanager
def mixed_stack(data: Path, releases: dict[str, Path], first: str, **more: str) -> Iterator[MixedStack]:
    """All of it of the release `first`, and nothing of it afterwards; `more` settings of all."""
    stack = MixedStack(data, releases, more)
    try:
        stack.start_all(first)
        yield stack
    finally:
        stack.kill_all()


def _listening() -> set[int]:
    """Of /proc/net/tcp (proc(5)): 0A is LISTEN."""
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == "0A"}


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=_ROOT, check=True, capture_output=True).stdout
