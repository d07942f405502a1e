"""The two brokers, each alone with an empty folder, and with the users and virtual hosts that suites expect."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.brokers.hopline import Hopline
from benchmarks.brokers.processes import LOOPBACK, free_port
from benchmarks.brokers.rabbitmq import RabbitMQ
from benchmarks.failure import BenchmarkError
from benchmarks.wire import Connection
from suites.failure import NotRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.brokers import Broker
    from benchmarks.wire import Address
    from suites.suite import Suite

HOPLINE, RABBITMQ = "hopline", "rabbitmq"
DEFAULT_PORT = 5672


@contextmanager
def serving(name: str, suite: Suite, log: Path) -> Iterator[Address]:
    """The broker while `suite` runs; what it logged goes to `log`. Raises NotRun when it cannot serve the suite."""
    broker = BROKERS[name](port_for(suite))
    if reason := broker.missing():
        raise NotRun(reason)
    folder = Path(tempfile.mkdtemp(prefix="suites-"))
    try:
        PREPARATIONS[name](folder, suite)
        address = broker.start(folder)
        if name == HOPLINE:
            _tell_hopline(folder, suite)
        yield address
    except BenchmarkError as failure:
        raise NotRun(f"{name} did not start: {failure}") from failure
    finally:
        broker.stop()
        _keep_logs(folder, log)
        shutil.rmtree(folder, ignore_errors=True)


def answers(address: Address) -> bool:
    """Whether a connection to the broker can be opened."""
    with suppress(OSError, BenchmarkError):
        Connection(address).close()
        return True
    return False


def port_for(suite: Suite) -> int:
    """5672 where it is free, since much in suites takes it for granted; raises NotRun when the suite needs it."""
    with suppress(OSError), socket.create_server((LOOPBACK, DEFAULT_PORT)):
        return DEFAULT_PORT
    if suite.default_port:
        raise NotRun("it wants port 5672, which is taken: see suites/README.md")
    return free_port()


def _configure_rabbitmq(folder: Path, suite: Suite) -> None:
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    users = {"guest": "guest", **suite.users}
    hosts = ("/", *suite.virtual_hosts)
    definitions = {
        "users": [{"name": name, "password": word, "tags": "administrator"} for name, word in users.items()],
        "vhosts": [{"name": host} for host in hosts],
        "permissions": [{"user": user, "vhost": host, **everything} for user in users for host in hosts],
    }
    (folder / "definitions.json").write_text(json.dumps(definitions))
    (folder / "rabbitmq.conf").write_text(f"load_definitions = {folder / 'definitions.json'}\n")


def _configure_nothing(folder: Path, suite: Suite) -> None:
    """Hopline is told while it runs."""


def _tell_hopline(folder: Path, suite: Suite) -> None:
    command = Path(sys.executable).with_name("hopline")
    environment = {**os.environ, "HOPLINE_DATA": str(folder / "data")}
    orders = [(["vhosts", "add", host], "") for host in suite.virtual_hosts]
    orders += [(["users", "add", name, "--password-file", "-"], word) for name, word in suite.users.items()]
    everything = [part for what in ("configure", "write", "read") for part in (f"--{what}", ".*")]
    orders += [(["permissions", "set", name, "--all-vhosts", *everything], "") for name in suite.users]
    for words, standard_input in orders:
        done = subprocess.run(
            [command, *words], env=environment, input=standard_input, text=True, check=False, capture_output=True
        )
        if done.returncode:
            raise NotRun(f"hopline {' '.join(words)} failed: {done.stderr.strip() or done.stdout.strip()}")


def _keep_logs(folder: Path, log: Path) -> None:
    found = [folder / "hopline.log", folder / "rabbitmq.log", *sorted((folder / "log").glob("*.log"))]
    log.write_text("".join(path.read_text(errors="replace") for path in found if path.exists()))


def _hopline(port: int) -> Broker:
    return Hopline(port=port)


def _rabbitmq(port: int) -> Broker:
    return RabbitMQ(port=port)


BROKERS: dict[str, Callable[[int], Broker]] = {HOPLINE: _hopline, RABBITMQ: _rabbitmq}
PREPARATIONS = {HOPLINE: _configure_nothing, RABBITMQ: _configure_rabbitmq}
