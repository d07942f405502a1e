"""The whole local stack, as `hopline up` starts it."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path

from benchmarks.brokers.processes import LOOPBACK, ProcessGroup, descendants, free_port
from benchmarks.wire import Address

RECORDED = frozenset({"transient", "acked", "ids", "persistence", "keys", "keys-100"})


class Hopline:
    """Five services and their supervisor, with durable data in the given folder.

    Messages are on record or not; there are as many queue processes as by default, or so many. Port 0 is a free one.
    """

    def __init__(self, *, ledger: bool = True, queue_processes: int = 0, port: int = 0) -> None:
        self.name = "hopline" if ledger else "no ledger"
        # Enough to see what the record costs.
        self.measures: frozenset[str] | None = None if ledger else RECORDED
        self._settings = {"HOPLINE_LEDGER": str(ledger)}
        if queue_processes:
            self.name = f"{queue_processes} queue process{'es' if queue_processes > 1 else ''}"
            self._settings["HOPLINE_QUEUE_PROCESSES"] = str(queue_processes)
        self._port = port
        self._command = Path(sys.executable).with_name("hopline")
        self._group: ProcessGroup | None = None

    def missing(self) -> str | None:
        return None if self._command.exists() else f"{self._command} is not installed"

    def start(self, folder: Path) -> Address:
        amqp_port, http_port = self._port or free_port(), free_port()
        environment = {
            "HOPLINE_AMQP_HOST": LOOPBACK,
            "HOPLINE_HTTP_HOST": LOOPBACK,
            "HOPLINE_AMQP_PORT": str(amqp_port),
            "HOPLINE_HTTP_PORT": str(http_port),
            "HOPLINE_DATA": str(folder / "data"),
            "HOPLINE_LOG_LEVEL": "warning",
            **self._settings,
        }
        self._group = ProcessGroup([str(self._command), "up"], environment, folder / "hopline.log")
        self._group.wait_until(lambda: _healthy(http_port))
        return Address(LOOPBACK, amqp_port)

    def stop(self) -> None:
        if self._group:
            self._group.stop()
            self._group = None

    def processes(self) -> list[int]:
        return descendants(self._group.pid) if self._group else []


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
