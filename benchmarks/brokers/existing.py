"""A broker that runs already, at a loopback address."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from benchmarks.failure import BenchmarkError
from benchmarks.wire import Address

if TYPE_CHECKING:
    from pathlib import Path


class Existing:
    """Nothing is started or stopped; memory and CPU time of it are not known."""

    measures: frozenset[str] | None = None
    queue_type = ""

    def __init__(self, name: str, address: str) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdigit() or not _is_loopback(host):
            raise BenchmarkError(f"{address} is no loopback address of the form 127.0.0.1:5672")
        self.name = name
        self._address = Address(host, int(port))

    def missing(self) -> str | None:
        return None

    def start(self, folder: Path) -> Address:  # noqa: ARG002 - it writes nothing here
        return self._address

    def stop(self) -> None:
        """It goes on."""

    def processes(self) -> list[int]:
        return []


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
