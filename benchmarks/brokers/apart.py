"""Hopline's services as containers run them: each by its own command, with the others over TCP."""

from __future__ import annotations

from pathlib import Path

from benchmarks.brokers.hopline import COMMAND, settings_for
from benchmarks.brokers.processes import LOOPBACK, ProcessGroup, answers_well, descendants, free_port
from benchmarks.wire import Address

_ROLES = ("store", "router", "mgmt", "queue", "gateway")
_QUEUE_PROCESSES = 2  # as `hopline up` starts them


class Apart:
    """Five services without a supervisor, with the stack's secret between them, or without.

    There is no NATS, so no message is on record, and no events go anywhere: neither is on a message's way.
    """

    measures: frozenset[str] | None = None
    queue_type = ""

    def __init__(self, *, secret: bool) -> None:
        self.name = "over TCP, secret" if secret else "over TCP"
        self._secret = secret
        self._groups: list[ProcessGroup] = []

    def missing(self) -> str | None:
        return None if COMMAND.exists() else f"{COMMAND} is not installed"

    def start(self, folder: Path) -> Address:
        amqp_port, http_port = free_port(), free_port()
        environment = {
            **settings_for(folder, amqp_port, http_port),
            **{f"HOPLINE_{role.upper()}_ADDRESS": _free_address() for role in _ROLES},
            "HOPLINE_LEDGER": "False",
        }
        if self._secret:
            environment["HOPLINE_SECRET_FILE"] = str(folder / "secret")
        for role in _ROLES[:-1]:
            self._run(folder, role, environment)
        for number in range(2, _QUEUE_PROCESSES + 1):
            own = {"HOPLINE_QUEUE_ADDRESS": _free_address()}
            self._run(folder, "queue", {**environment, **own}, f"queue-{number}")
        gateway = self._run(folder, "gateway", environment)
        gateway.wait_until(lambda: answers_well(http_port))
        return Address(LOOPBACK, amqp_port)

    def stop(self) -> None:
        while self._groups:
            self._groups.pop().stop()

    def processes(self) -> list[int]:
        return [pid for group in self._groups for pid in descendants(group.pid)]

    def _run(self, folder: Path, role: str, environment: dict[str, str], name: str = "") -> ProcessGroup:
        command = [str(COMMAND), role, *(["--name", name] if name else [])]
        group = ProcessGroup(command, environment, folder / f"{name or role}.log")
        self._groups.append(group)
        return group


def _free_address() -> str:
    return f"{LOOPBACK}:{free_port()}"
