"""Which gateways there are, for a process that has just started: one that it has not met may have clients all the same.

The router that writes keeps a record of each before the gateway serves anybody, and until it is gone. So they are known
while no router is there, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Container
from functools import partial
from math import inf
from typing import Final, NamedTuple

from services.common.clock import Clock, monotonic
from services.common.containment import for_each
from services.common.watchers import RECORD_KIND, SILENT_KIND, origin_in
from services.rpc.store_pb2 import Record, Records

KINDS: Final = (RECORD_KIND, SILENT_KIND)

_SILENT_SECONDS: Final = 10.0
"""For no longer is one waited for that is on record as silent: the router that should take it off may be another."""

_REMEMBERED_SECONDS: Final = 30.0
"""After one was lost: it may stand still, or be cut off from the routers alone, and come again with all its clients."""


class _Gateway(NamedTuple):
    origin: int
    until: float


_Found = dict[tuple[str, str], _Gateway]


class Gateways:
    """Their origins, by what names them; `clock` is monotonic."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._found: _Found | None = None
        self._lost = -inf  # when one was, last

    async def follow(self, messages: AsyncIterator[Records]) -> None:
        """Applies a watch of records of KINDS; ends with it."""
        snapshot: _Found | None = None
        async for message in messages:
            before = self._origins()
            if message.snapshot:
                snapshot = snapshot or {}
                self._apply(snapshot, message)
                if message.last:
                    self._found, snapshot = snapshot, None
            elif self._found is not None:
                self._apply(self._found, message)
            if not before <= self._origins():
                self._lost = self._clock()

    def has_others(self, origins: Container[int]) -> bool:
        """Whether there may be any but these: it is not known before the first whole snapshot."""
        if self._found is None:
            return True
        now = self._clock()
        return any(until > now and origin not in origins for origin, until in self._found.values())

    def are_all_among(self, origins: Container[int]) -> bool:
        """Whether these are all that there are, and none was lost for so long that it does not come again."""
        if self._found is None or self._clock() < self._lost + _REMEMBERED_SECONDS:
            return False
        return all(origin in origins for origin in self._origins())

    def _origins(self) -> set[int]:
        return {each.origin for each in (self._found or {}).values()}

    def _apply(self, found: _Found, message: Records) -> None:
        for_each("reading a watcher's record", message.records, partial(self._put, found))

    def _put(self, found: _Found, record: Record) -> None:
        key = (record.kind, record.key)
        found.pop(key, None)
        if not record.deleted and (origin := origin_in(record.value)) is not None:
            found[key] = (self._found or {}).get(key) or _Gateway(origin, self._until(record.kind))

    def _until(self, kind: str) -> float:
        return self._clock() + _SILENT_SECONDS if kind == SILENT_KIND else inf
