"""Three RabbitMQ nodes of one cluster, and quorum queues on all of them: what stands beside JetStream's three."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.brokers.processes import LOOPBACK, ProcessGroup, descendants, free_port
from benchmarks.brokers.rabbitmq import environment_of, missing, node_name, script, serves
from benchmarks.failure import BenchmarkError
from benchmarks.wire import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

_NODES = 3
_SECONDS = 60.0
DURABLE = frozenset({"persistent", "persistent-alternating"})
"""What a quorum queue is for, and what stores are compared by."""


class RabbitMQCluster:
    """Default settings, without plugins. Clients are at the first node, which leads the queues that are declared there:
    so no message goes a way that it need not.
    """

    name = "rabbitmq quorum"
    measures: frozenset[str] | None = DURABLE
    queue_type = "quorum"

    def __init__(self) -> None:
        self._groups: list[ProcessGroup] = []

    def missing(self) -> str | None:
        return missing()

    def start(self, folder: Path) -> Address:
        ports, mapper_port = [free_port() for _ in range(_NODES)], free_port()
        nodes = [_prepared(folder / f"node-{port}", port, mapper_port, ports) for port in ports]
        _let_in(folder, ports)
        # Erlang would start the port mapper as a daemon, which outlives the nodes.
        mapper = ["epmd", "-port", str(mapper_port), "-address", LOOPBACK]
        self._groups.append(ProcessGroup(mapper, nodes[0], folder / "epmd.log"))
        for port, environment in zip(ports, nodes, strict=True):
            self._start(Address(LOOPBACK, port), environment, folder / f"rabbitmq-{port}.log")
        _wait_for_all(nodes[0])
        return Address(LOOPBACK, ports[0])

    def stop(self) -> None:
        while self._groups:
            self._groups.pop().stop()

    def processes(self) -> list[int]:
        return [pid for group in self._groups for pid in descendants(group.pid)]

    def _start(self, address: Address, environment: Mapping[str, str], log: Path) -> None:
        # One after the other: each finds a cluster that is there.
        node = ProcessGroup([script()], environment, log)
        self._groups.append(node)
        node.wait_until(lambda: serves(address))


def _prepared(folder: Path, port: int, mapper_port: int, ports: list[int]) -> dict[str, str]:
    """The environment of a node that looks for the others when it starts for the first time."""
    folder.mkdir()
    nodes = [f"cluster_formation.classic_config.nodes.{n} = {node_name(each)}\n" for n, each in enumerate(ports, 1)]
    (folder / "rabbitmq.conf").write_text(
        "cluster_formation.peer_discovery_backend = classic_config\n" + "".join(nodes)
    )
    return environment_of(folder, port, mapper_port, ())


def _let_in(folder: Path, ports: list[int]) -> None:
    """Nodes talk to those that have the same cookie in their home."""
    cookie = secrets.token_hex(16)
    for port in ports:
        path = folder / f"node-{port}" / ".erlang.cookie"
        path.write_text(cookie)
        path.chmod(0o400)


def _wait_for_all(environment: Mapping[str, str]) -> None:
    """With fewer nodes a quorum queue has fewer copies, and says nothing."""
    command = [str(Path(script()).with_name("rabbitmqctl")), "await_online_nodes", str(_NODES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode:
        raise BenchmarkError(f"RabbitMQ's nodes make no cluster: {done.stdout} {done.stderr}")
