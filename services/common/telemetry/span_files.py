"""Writes spans to rotating files, as OTLP JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from services.common.clock import epoch_ms
from services.common.rotating_files import RotatingFiles
from services.common.telemetry.otlp_json import line
from services.common.telemetry.span import Span, Value


class SpanFiles(RotatingFiles):
    """One writer's files. An Exporter (services.common.telemetry.export)."""

    def __init__(
        self,
        folder: Path,
        name: str,
        resource: Mapping[str, Value],
        version: str,
        *,
        largest: int,
        keep_bytes: int,
        keep_days: int,
        must_give_way: Callable[[], bool] = lambda: False,
        now: Callable[[], datetime] = lambda: datetime.fromtimestamp(epoch_ms() / 1000, UTC),
    ) -> None:
        """As `RotatingFiles`. Nothing is written while `must_give_way`."""
        super().__init__(folder, name, largest=largest, keep_bytes=keep_bytes, keep_days=keep_days, now=now)
        self._resource = resource
        self._version = version
        self._must_give_way = must_give_way

    def export(self, spans: Sequence[Span]) -> None:
        """Appends one line; raises OSError, also when the room that is left is kept for messages."""
        if self._must_give_way():
            raise self._no_room("low on disk, spans give way to messages")
        self.append(line(self._resource, self._version, spans) + b"\n")
