"""NATS servers of the tests' own, with JetStream, alone or three in a cluster, to be killed and started again."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.request import urlopen

from tests.support.ports import free_ports
from tests.support.stack import HOST

_CONFIGURATION = """
server_name: {name}
listen: "{host}:{port}"
http: "{host}:{monitor}"
jetstream {{ store_dir: "{folder}" }}
{more}
"""
_CLUSTER = """
cluster {{ name: hopline, listen: "{host}:{port}", routes: [{routes}] }}
"""
_streams = count(1)


class Server:
    """One, always on the same port and folder."""

    def __init__(self, folder: Path, name: str = "alone", more: str = "") -> None:
        self.port, self._monitor = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / f"{name}.log"
        self._file = folder / f"{name}.conf"
        place = {"host": HOST, "port": self.port, "monitor": self._monitor, "folder": folder / name}
        self._file.write_text(_CONFIGURATION.format(name=name, more=more, **place))

    def start(self) -> None:
        """Returns at once; does nothing where it runs."""
        if self._process is None:
            program = Path(sysconfig.get_path("scripts")) / "nats-server"
            self._process = subprocess.Popen([program, "--config", self._file, "--log", self._log])

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Returns when it is gone."""
        if self._process:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """SIGSTOP: its socket is open, and it does not answer."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{self._process.pid}/stat")
        while status.read_text().rpartition(") ")[2][0] != "T":
            time.sleep(0.001)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_text()[-1000:] if self._log.exists() else f"{self._log} is not there"

    def healthy(self) -> bool:
        """Whether it says that all that it has is up to date."""
        try:
            with urlopen(f"http://{HOST}:{self._monitor}/healthz", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class Servers:
    """One, or some of a cluster."""

    def __init__(self, each: Sequence[Server], folder: Path) -> None:
        self.each = each
        self._folder = folder

    def start(self) -> None:
        """Those that do not run; returns when all serve."""
        for server in self.each:
            server.start()
        deadline = time.monotonic() + 60
        while not all(server.healthy() for server in self.each):
            assert time.monotonic() < deadline, "\n".join(server.last_words() for server in self.each)
            time.sleep(0.05)

    def end(self) -> None:
        """With all that they have."""
        for server in self.each:
            server.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, stream: str = "", options: str = "") -> str:
        """Of a stream that does not exist yet."""
        hosts = ",".join(f"{HOST}:{server.port}" for server in self.each)
        return f"nats://{hosts}/{stream or f'S{next(_streams)}'}{options}"


@contextmanager
def alone(more: str = "") -> Iterator[Servers]:
    """One that runs, until it is not wanted any more; `more` of its configuration."""
    folder = Path(tempfile.mkdtemp(prefix="nats-"))
    yield from _running(Servers([Server(folder, more=more)], folder))


@contextmanager
def three() -> Iterator[Servers]:
    """A cluster that runs, until it is not wanted any more."""
    folder = Path(tempfile.mkdtemp(prefix="nats-"))
    ports = free_ports(3)
    routes = ", ".join(f'"nats://{HOST}:{port}"' for port in ports)
    each = [
        Server(folder, f"n{number}", _CLUSTER.format(host=HOST, port=port, routes=routes))
        for number, port in enumerate(ports)
    ]
    yield from _running(Servers(each, folder))


def _running(servers: Servers) -> Iterator[Servers]:
    try:
        servers.start()
        yield servers
    finally:
        servers.end()
