"""Three NATS servers that keep a store, as `hopline nats --peers` starts them: what they confirm is on their disks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.brokers.processes import LOOPBACK, ProcessGroup, answers_well, descendants, free_port

if TYPE_CHECKING:
    from pathlib import Path

_SERVERS = 3
_STREAM = "BENCHMARK"


class Servers:
    """Each has a folder of its own in the given one; they and the stack know each other by the secret that is there."""

    def __init__(self, command: Path, folder: Path) -> None:
        self._command = command
        self._folder = folder
        self._groups: list[ProcessGroup] = []
        self._ports: list[int] = []
        self.secret = folder / "secret"

    @property
    def url(self) -> str:
        """Of the stream that the store makes there."""
        return f"nats://{','.join(f'{LOOPBACK}:{port}' for port in self._ports)}/{_STREAM}"

    def start(self) -> None:
        """Returns when all three serve."""
        peers = [free_port() for _ in range(_SERVERS)]
        named = ",".join(f"{LOOPBACK}:{port}" for port in peers)
        monitors = [self._run(f"nats-{number}", port, named) for number, port in enumerate(peers, 1)]
        for group, monitor in zip(self._groups, monitors, strict=True):
            group.wait_until(partial(answers_well, monitor))

    def stop(self) -> None:
        while self._groups:
            self._groups.pop().stop()

    def processes(self) -> list[int]:
        return [pid for group in self._groups for pid in descendants(group.pid)]

    def _run(self, name: str, cluster_port: int, peers: str) -> int:
        """Starts one; gives the port at which it says whether it serves."""
        port, monitor = free_port(), free_port()
        self._ports.append(port)
        places = ("--port", port, "--monitor-port", monitor, "--cluster-port", cluster_port, "--peers", peers)
        command = [str(self._command), "nats", "--name", name, *map(str, places)]
        environment = {"HOPLINE_DATA": str(self._folder / name), "HOPLINE_SECRET_FILE": str(self.secret)}
        self._groups.append(ProcessGroup(command, environment, self._folder / f"{name}.log"))
        return monitor
