"""The whole stack as a user starts it, `hopline up`, with ways to kill parts of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tests.support.healthz import Healthz
from tests.support.interop_address import BrokerAddress
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
LOG_TAIL = 8_000
_PATIENCE = 4  # times as long as a quiet machine takes at most: what does not come at all is told later, no more
SERVICES = ("nats", "store", "router", "queue-1", "queue-2", "gateway", "mgmt")


class Stack(Healthz):
    """One stack on free ports and the given data folder; it can be stopped or killed, and started again."""

    running: ClassVar[list[Stack]] = []

    def __init__(self, data: Path, environment: dict[str, str] | None = None) -> None:
        self.data = data
        self.address = BrokerAddress(HOST, free_port())
        self.http_port = free_port()
        self.log = data.with_name(f"{data.name}.log")
        self._environment = environment or {}
        self.gateway_pids: dict[BrokerAddress, int] = {}  # of those beside the supervisor's own
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when the stack says that it is healthy."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [Path(sys.executable).with_name("hopline"), "up"],
                env={**os.environ, **self._settings(), **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        Stack.running.append(self)
        self.wait_until_healthy()

    def stop(self) -> None:
        """Ends it as Ctrl-C does; what does not end in time is killed, and that is an error."""
        process = self._process
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            status = process.wait(STOP_SECONDS)
        finally:
            self.kill_all()
        assert status == 0, f"the stack ended with status {status}\n{self.log_tail()}"

    def kill(self, service: str) -> int:
        """kill -9 of one service; gives the process id it had."""
        pid = self.pid(service)
        os.kill(pid, signal.SIGKILL)
        return pid

    @contextmanager
    def without(self, service: str) -> Iterator[None]:
        """kill -9 of one service, which is not started again before the end; then it is healthy again."""
        assert self._process, "the stack is not started"
        pid = self.pid(service)
        self._process.send_signal(signal.SIGSTOP)
        try:
            os.kill(pid, signal.SIGKILL)
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)
        self.wait_until_replaced(service, pid)

    def kill_all(self) -> None:
        """kill -9 of the supervisor and every service at once."""
        process, self._process = self._process, None
        if process is None:
            return
        for pid in self.pids(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        Stack.running.remove(self)

    @contextmanager
    def another_gateway(self) -> Iterator[BrokerAddress]:
        """A second gateway, beside the supervisor's own; gives the address where it serves."""
        address = BrokerAddress(HOST, free_port())
        settings = {
            **self._settings(),
            "HOPLINE_AMQP_PORT": str(address.port),
            "HOPLINE_GATEWAY_ADDRESS": f"{HOST}:{free_port()}",
        }
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                [Path(sys.executable).with_name("hopline"), "gateway"],
                env={**os.environ, **settings, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until(lambda: _accepts(address), START_SECONDS, "second gateway")
            self.gateway_pids[address] = process.pid
            yield address
        finally:
            self.gateway_pids.pop(address, None)
            process.kill()
            process.wait()

    def pid(self, service: str) -> int:
        """The process id that the supervisor wrote down for `service`."""
        wait_until(lambda: self._written_pid(service), START_SECONDS, f"pid file of {service}")
        return self._written_pid(service)

    def pids(self, root: int | None = None) -> list[int]:
        """The supervisor and everything below it."""
        assert root or self._process, "the stack is not started"
        found = [root or self._process.pid]
        parents = dict(_parents())
        for pid in found:
            found.extend(child for child, parent in parents.items() if parent == pid)
        return found

    def memory(self, *services: str) -> int:
        """Bytes that all processes of the stack occupy (PSS), or those of some `services`."""
        return sum(map(_proportional_memory, map(self.pid, services) if services else self.pids()))

    def wait_until_replaced(self, service: str, pid: int) -> None:
        """Returns when `service` runs under another process id than `pid` and the stack is healthy again."""
        wait_until(lambda: self._written_pid(service) not in {0, pid}, START_SECONDS, f"new {service}")
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        def healthy() -> bool:
            assert self._process, "the stack is not started"
            assert self._process.poll() is None, f"the stack has ended\n{self.log_tail()}"
            return self.is_healthy()

        wait_until(healthy, START_SECONDS, "a healthy stack")

    def command_environment(self) -> dict[str, str]:
        """What `hopline` needs to find this stack."""
        return {**os.environ, **self._settings(), **self._environment}

    def log_tail(self) -> str:
        """The end of what the stack has logged."""
        return self.log.read_text(errors="replace")[-LOG_TAIL:]

    def _written_pid(self, service: str) -> int:
        """0 while the file is not there, or being written."""
        path = self.data / "run" / f"{service}.pid"
        return int(path.read_text() or 0) if path.exists() else 0

    def _settings(self) -> dict[str, str]:
        return {
            "HOPLINE_AMQP_HOST": HOST,
            "HOPLINE_HTTP_HOST": HOST,
            "HOPLINE_AMQP_PORT": str(self.address.port),
            "HOPLINE_HTTP_PORT": str(self.http_port),
            "HOPLINE_DATA": str(self.data),
            "HOPLINE_NATS_PORT": "0",
        }


@contextmanager
def running_stack(data: Path, environment: dict[str, str] | None = None) -> Iterator[Stack]:
    """A started stack, and nothing of it afterwards."""
    stack = Stack(data, environment)
    try:
        stack.start()
        yield stack
    finally:
        stack.kill_all()


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Returns when `condition()` holds; fails after `seconds`, and some more on a machine that others slow down."""
    deadline = time.monotonic() + seconds * _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {seconds * _PATIENCE} seconds"
        time.sleep(0.05)


def _accepts(address: BrokerAddress) -> bool:
    with suppress(OSError), socket.create_connection((address.host, address.port), 1):
        return True
    return False


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The name, in parentheses, may itself hold blanks and parentheses.
                yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def _proportional_memory(pid: int) -> int:
    with suppress(OSError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
    return 0
