"""What types of loggers can do: plug-ins of `hopline.broker_loggers` and `hopline.virtual_host_loggers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from services.common.clock import monotonic
from services.rpc.logs_pb2 import Line

Said = Mapping[str, Any]
"""Attributes, by the names of the model: all that the type has."""

EVER: Final = -(1 << 62)
"""Before all lines."""


def now_us() -> int:
    """By the clock by which lines are known (`following.py`)."""
    return int(monotonic() * 1e6)


class Sink(Protocol):
    """Where the lines of one logger go."""

    trouble: str
    """Why they do not get there; "": they do."""
    since_us: int
    """Lines that were known before, by this process's monotonic clock, are in it already, or not wanted."""

    def take(self, lines: Sequence[Line]) -> None:
        """Of those that come: some later. Neither waits nor raises."""

    async def close(self) -> None:
        """With what has come by then, as far as that goes quickly."""


class LoggerKind(Protocol):
    """One type."""

    defaults: Said
    """Its attributes, with what each is where nobody says it; None: that has to be said."""

    def check(self, said: Said, folder: Path) -> None:
        """Whether it can be opened; waits for a disk. `folder` is where files may be.

        Raises IllegalConfiguration with the attribute that is wrong, and why.
        """

    async def open(self, said: Said, folder: Path, former: Sink | None) -> Sink:
        """From now on. `former` is of the same logger, before it was changed: it is closed.

        A disk is waited for elsewhere than in the event loop.
        """
