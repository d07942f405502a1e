"""The whole local stack, as `hopline up` starts it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from benchmarks.brokers.jetstream import Servers
from benchmarks.brokers.postgres import Cluster, binaries
from benchmarks.brokers.processes import LOOPBACK, ProcessGroup, answers_well, descendants, free_port
from benchmarks.wire import Address

COMMAND = Path(sys.executable).with_name("hopline")
RECORDED = frozenset({"transient", "acked", "ids", "persistence", "keys", "keys-100"})


class StoreName(StrEnum):
    """What Hopline keeps things in."""

    sqlite = "sqlite"
    postgres = "postgres"
    jetstream = "jetstream"


class Hopline:
    """Five services and their supervisor, with durable data in the given folder.

    Messages are on record or not; there are as many queue processes as by default, or so many. Port 0 is a free one.
    The store is a file in the folder, or a database of a PostgreSQL, or a stream of three NATS servers, that are
    started beside it.
    """

    queue_type = ""

    def __init__(
        self,
        *,
        ledger: bool = True,
        queue_processes: int = 0,
        port: int = 0,
        store: StoreName = StoreName.sqlite,
        store_processes: int = 1,
    ) -> None:
        self.name = "hopline" if ledger else "no ledger"
        if store is not StoreName.sqlite:
            self.name += f" on {store}"
        self._store = store
        self._cluster: Cluster | None = None
        self._servers: Servers | None = None
        # Enough to see what the record costs.
        self.measures: frozenset[str] | None = None if ledger else RECORDED
        self._settings = {"HOPLINE_LEDGER": str(ledger), "HOPLINE_STORE_PROCESSES": str(store_processes)}
        if queue_processes:
            self.name = f"{queue_processes} queue process{'es' if queue_processes > 1 else ''}"
            self._settings["HOPLINE_QUEUE_PROCESSES"] = str(queue_processes)
        self._port = port
        self._group: ProcessGroup | None = None
        self._environment: dict[str, str] = {}
        self._folder = Path()
        self.http_port = 0  # from its start on

    def missing(self) -> str | None:
        if self._store is StoreName.postgres and binaries() is None:
            return "postgresql is not installed (Debian: apt install postgresql)"
        return None if COMMAND.exists() else f"{COMMAND} is not installed"

    def start(self, folder: Path) -> Address:
        amqp_port, http_port = self._port or free_port(), free_port()
        self._environment = {
            **settings_for(folder, amqp_port, http_port),
            **self._settings,
            **self._store_settings(folder),
        }
        self._folder = folder
        self.http_port = http_port
        self.resume()
        return Address(LOOPBACK, amqp_port)

    def resume(self) -> None:
        """Starts the stack with the data that it has, after `crash`; returns when it is ready."""
        self._group = ProcessGroup([str(COMMAND), "up"], self._environment, self._folder / "hopline.log")
        self._group.wait_until(lambda: answers_well(self.http_port))

    def crash(self) -> None:
        """Kills (-9) all its processes at once, but for what keeps the store elsewhere."""
        if self._group:
            for pid in descendants(self._group.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._group.stop()

    def pid(self, service: str) -> int:
        """Of one of its processes, by the name that the supervisor calls it."""
        return int((self._folder / "data" / "run" / f"{service}.pid").read_text())

    def _store_settings(self, folder: Path) -> dict[str, str]:
        if self._store is StoreName.sqlite:
            return {}
        if self._store is StoreName.jetstream:
            self._servers = Servers(COMMAND, folder)
            self._servers.start()
            return {"HOPLINE_STORE_URL": self._servers.url, "HOPLINE_SECRET_FILE": str(self._servers.secret)}
        # On the same disk; not in the folder, which is ours alone, and the server another user's.
        self._cluster = Cluster(folder.parent)
        self._cluster.start()
        return {"HOPLINE_STORE_URL": self._cluster.new_database()}

    def stop(self) -> None:
        if self._group:
            self._group.stop()
            self._group = None
        if self._cluster:
            self._cluster.end()
            self._cluster = None
        if self._servers:
            self._servers.stop()
            self._servers = None

    def processes(self) -> list[int]:
        roots = [self._group.pid] if self._group else []
        if self._cluster:
            roots.append(self._cluster.server())
        servers = self._servers.processes() if self._servers else []
        return servers + [pid for root in roots for pid in descendants(root)]


def settings_for(folder: Path, amqp_port: int, http_port: int) -> dict[str, str]:
    """Environment of a stack on loopback that keeps everything in `folder`."""
    return {
        "HOPLINE_AMQP_HOST": LOOPBACK,
        "HOPLINE_HTTP_HOST": LOOPBACK,
        "HOPLINE_AMQP_PORT": str(amqp_port),
        "HOPLINE_HTTP_PORT": str(http_port),
        "HOPLINE_DATA": str(folder / "data"),
        "HOPLINE_LOG_LEVEL": "warning",
    }
