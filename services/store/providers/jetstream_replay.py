"""Puts messages of the log together to groups. An incomplete group, whose writer died meanwhile, does not count."""

from __future__ import annotations

from typing import NamedTuple

from services.store.providers.jetstream_encoding import Part


class Found(NamedTuple):
    """A group that is whole; its first part has `sequence`, and all but the last have `cut` bytes of it."""

    writer: int
    number: int
    sequence: int
    cut: int
    body: bytes


class Replay:
    """Takes parts in the order of the log, with their sequences there."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._first = 0

    def take(self, sequence: int, part: Part) -> Found | None:
        """Gives the group if this is its last part."""
        if part.nth == 0:
            self._parts, self._first = [part], sequence
        elif self._follows(sequence, part):
            self._parts.append(part)
        else:
            self._parts = []
        return self._whole() if len(self._parts) == part.total else None

    def _follows(self, sequence: int, part: Part) -> bool:
        """Whether a part continues the group: parts have consecutive sequences, since a writer names the one before."""
        count = len(self._parts)
        if not count or sequence != self._first + count:
            return False
        last = self._parts[-1]
        return part._replace(body=b"") == last._replace(nth=count, body=b"")

    def _whole(self) -> Found:
        parts, self._parts = self._parts, []
        first = parts[0]
        body = b"".join(part.body for part in parts) if len(parts) > 1 else first.body
        return Found(first.writer, first.number, self._first, len(first.body), body)
