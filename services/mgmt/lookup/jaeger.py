"""Where a person sees a trace in Jaeger, as long as Jaeger is there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from urllib.parse import urlsplit

from services.common.clock import Clock, monotonic

_SECONDS = 0.5  # for an answer
_KNOWN = 10.0  # seconds for which an answer counts


class Jaeger:
    """Links to its pages; none where it is not configured, or does not listen."""

    def __init__(self, url: str, address: str = "", clock: Clock = monotonic) -> None:
        """`url` is what a person opens, `address` (host:port) where this process finds it: "" for that of the url."""
        self._url = url.rstrip("/")
        parts = urlsplit(f"//{address}" if address else url)
        self._host, self._port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._clock = clock
        self._asked = -_KNOWN
        self._there = False

    async def links(self, trace_ids: Iterable[str]) -> list[str]:
        """One for each trace."""
        wanted = [f"{self._url}/trace/{trace_id}" for trace_id in trace_ids]
        return wanted if self._url and wanted and await self._is_there() else []

    async def _is_there(self) -> bool:
        if self._clock() >= self._asked + _KNOWN:
            self._there = await self._listens()
            self._asked = self._clock()
        return self._there

    async def _listens(self) -> bool:
        try:
            async with asyncio.timeout(_SECONDS):
                _, writer = await asyncio.open_connection(self._host, self._port)
        except OSError:  # TimeoutError too
            return False
        writer.close()
        return True
