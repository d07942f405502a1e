"""The brokers that can be measured: each starts alone on loopback with an empty folder, and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.wire import Address


class Broker(Protocol):
    """A broker of its own for a while."""

    name: str
    measures: frozenset[str] | None
    """The scenarios that it is for, None for all."""
    queue_type: str
    """What its queues are declared as, where that has to be said; otherwise ""."""

    def missing(self) -> str | None:
        """Why it cannot run here, or None when it can."""

    def start(self, folder: Path) -> Address:
        """Returns when clients can connect; everything it writes goes to `folder`. Raises BenchmarkError."""

    def stop(self) -> None:
        """Ends every process of it, started or not."""

    def processes(self) -> list[int]:
        """The ids of all its processes, for memory and CPU time."""
