"""Memory: the last lines, for who asks. They are of one management process, and gone with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final

from services.common.clock import epoch_ns
from services.mgmt.loggers.kind import EVER, Said, Sink
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line

MOST: Final = 16384
"""Records of one logger, as in Broker-J."""
_BYTES: Final = 16 << 20
"""What they take together, whatever is wanted: lines have up to eight kibibytes."""


class MemorySink:
    """See Sink."""

    trouble = ""
    since_us = EVER

    def __init__(self, most: int, former: Iterable[tuple[int, Line]] = ()) -> None:
        self._most = most
        self._lines = deque(former)
        self._size = sum(_size(line) for _, line in self._lines)
        # They grow also from one management process to the next.
        self._next = self._lines[-1][0] + 1 if self._lines else epoch_ns() // 1000
        self._shorten()

    def take(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self._lines.append((self._next, line))
            self._next += 1
            self._size += _size(line)
        self._shorten()

    def _shorten(self) -> None:
        while len(self._lines) > self._most or self._size > _BYTES:
            self._size -= _size(self._lines.popleft()[1])

    def entries(self, after: int) -> list[dict[str, Any]]:
        """Those with higher ids, as Broker-J's LogRecord."""
        new = sum(number > after for number, _ in self._lines)
        return [_told(*each) for each in islice(self._lines, len(self._lines) - new, None)]

    @property
    def lines(self) -> Iterable[tuple[int, Line]]:
        """All of them, with their ids."""
        return self._lines

    async def close(self) -> None:
        """They go with it."""


def _size(line: Line) -> int:
    return len(line.text) + 200


def _told(number: int, line: Line) -> dict[str, Any]:
    return {
        "id": number,
        "timestamp": line.time_us // 1000,
        "level": line.level,
        "logger": line.logger,
        "threadName": line.instance,
        "message": line.text,
    }


class Memory:
    """See LoggerKind."""

    defaults: ClassVar[Said] = {"maxRecords": 4096}

    def check(self, said: Said, folder: Path) -> None:  # noqa: ARG002 - none of a disk
        if not 1 <= said["maxRecords"] <= MOST:
            raise IllegalConfiguration(f"attribute 'maxRecords': 1 to {MOST} are kept, not {said['maxRecords']}")

    async def open(self, said: Said, folder: Path, former: Sink | None) -> Sink:  # noqa: ARG002 - as above
        return MemorySink(said["maxRecords"], former.lines if isinstance(former, MemorySink) else ())
