"""Facts that were read or written lately, with their bytes: what a process reads it mostly writes, and the other way.

A queue process sends what it was sent, and what a gateway sends mostly comes back to it. So each is translated once,
and a column of what is known is two look-ups by C for each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from services.common.message.facts import Facts

_MOST = 8192  # facts; what comes together is kept together
_LONGEST = 512  # bytes of facts on average: longer ones would fill the memory


class _Known:
    """Facts by their bytes; bytes by the identity of facts, as to hash these takes several times as long."""

    __slots__ = ("facts", "kept", "raw")

    def __init__(self) -> None:
        self.facts: dict[bytes, Facts] = {}
        self.raw: dict[int, bytes] = {}
        self.kept: list[Facts] = []  # whose identities these are: nothing else may get one of them


class KnownFacts:
    """Of one process. When it is full, it begins again."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known = _Known()

    def facts(self, table: Sequence[bytes]) -> list[Facts | None]:
        """What these say; None where that is not known."""
        return list(map(self._known.facts.get, table))

    def raw(self, table: Sequence[Facts]) -> list[bytes | None]:
        """How these were written; None, or b"" of what was noted, where that is not known."""
        return list(map(self._known.raw.get, map(id, table)))

    def are_new(self, table: Sequence[Facts]) -> bool:
        """Whether none of these objects was ever read or written as bytes, or noted."""
        return self._known.raw.keys().isdisjoint(map(id, table))

    def note(self, table: Sequence[Facts]) -> None:
        """These are no longer new, though nothing is known of how they were written."""
        known = self._room_for(sum(len(each.routing_key) for each in table), len(table))
        if known:
            known.kept += table
            known.raw.update(zip(map(id, table), repeat(b"")))

    def add(self, raw: Sequence[bytes], facts: Sequence[Facts]) -> None:
        """These belong together."""
        if known := self._room_for(sum(map(len, raw)), len(raw)):
            known.kept += facts  # first: while identities are known, so is whose they are
            known.facts.update(zip(raw, facts, strict=True))
            known.raw.update(zip(map(id, facts), raw, strict=True))

    def forget(self) -> None:
        """All of it."""
        self._known = _Known()

    def _room_for(self, size: int, count: int) -> _Known | None:
        if size > _LONGEST * count:
            return None
        if len(self._known.kept) >= _MOST:
            self._known = _Known()  # another thread may be at the former one
        return self._known
