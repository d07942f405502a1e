"""A private RabbitMQ node: own folder, ports, cookie and port mapper, so that it meets no other node."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from benchmarks.brokers.processes import LOOPBACK, ProcessGroup, descendants, free_port
from benchmarks.failure import BenchmarkError
from benchmarks.wire import Address, Connection

# The script on the PATH of Debian changes to the system's user; the one of the package starts the node as our own user.
_SCRIPTS = (
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "/usr/local/sbin/rabbitmq-server",
    "/opt/rabbitmq/sbin/rabbitmq-server",
)


class RabbitMQ:
    """RabbitMQ with its default settings, but for a `rabbitmq.conf` that lies in its folder, and `plugins`.

    Port 0 is a free one.
    """

    name = "rabbitmq"
    measures: frozenset[str] | None = None
    queue_type = ""

    def __init__(self, *, port: int = 0, plugins: tuple[str, ...] = ()) -> None:
        self._port = port
        self._plugins = plugins
        self._groups: list[ProcessGroup] = []

    def missing(self) -> str | None:
        return missing()

    def start(self, folder: Path) -> Address:
        port, mapper_port = self._port or free_port(), free_port()
        environment = environment_of(folder, port, mapper_port, self._plugins)
        # Erlang would start the port mapper as a daemon, which outlives the node.
        mapper = ["epmd", "-port", str(mapper_port), "-address", LOOPBACK]
        self._groups.append(ProcessGroup(mapper, environment, folder / "epmd.log"))
        node = ProcessGroup([script()], environment, folder / "rabbitmq.log")
        self._groups.append(node)
        address = Address(LOOPBACK, port)
        node.wait_until(lambda: serves(address))
        return address

    def stop(self) -> None:
        while self._groups:
            self._groups.pop().stop()

    def processes(self) -> list[int]:
        return [pid for group in self._groups for pid in descendants(group.pid)]


def missing() -> str | None:
    """Why RabbitMQ cannot run here, or None when it can."""
    if _found() and shutil.which("epmd"):
        return None
    return "rabbitmq-server is not installed (Debian: apt install rabbitmq-server)"


def script() -> str:
    """What starts a node. Raises BenchmarkError where there is none."""
    if found := _found():
        return found
    raise BenchmarkError(str(missing()))


def node_name(port: int) -> str:
    """Of the node with this port."""
    return f"hopline-bench-{port}@localhost"


def environment_of(folder: Path, port: int, mapper_port: int, names: tuple[str, ...]) -> dict[str, str]:
    """A node's, with everything in `folder`, and plug-ins of these names."""
    plugins = folder / "enabled_plugins"
    plugins.write_text(f"[{','.join(names)}].\n")
    return {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(mapper_port),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "RABBITMQ_NODENAME": node_name(port),
        "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
    }


def serves(address: Address) -> bool:
    """Whether clients can connect."""
    with suppress(OSError, BenchmarkError):
        Connection(address).close()
        return True
    return False


def _found() -> str | None:
    candidates = (*_SCRIPTS, shutil.which("rabbitmq-server") or "")
    return next((path for path in candidates if path and Path(path).exists()), None)
