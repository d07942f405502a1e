"""Requests over HTTP, counted: an application before another one."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final

from services.common.clock import monotonic
from services.common.metrics.catalogue.mgmt import HTTP
from services.common.metrics.histogram import Histogram

if TYPE_CHECKING:
    from services.common.metrics.meters import Meters
    from services.mgmt.front import Application

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER: Final = "_OTHER"  # as the conventions say: clients may invent methods
_HANGS_UP: Final = "499"  # the client left before an answer


class CountedRequests:
    """As ASGI says. No path is told: there would be one for each object."""

    def __init__(self, application: Application, meters: Meters) -> None:
        self._application = application
        self._took = meters.histograms(HTTP)

    async def __call__(self, scope: MutableMapping[str, Any], receive: object, send: Any) -> None:  # noqa: ANN401 - ASGI's
        began, status = monotonic(), _HANGS_UP

        async def note(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._application(scope, receive, note)
        finally:
            method = scope.get("method", _OTHER)
            self._observe(method if method in _METHODS else _OTHER, status, monotonic() - began)

    def _observe(self, method: str, status: str, seconds: float) -> None:
        found = self._took.get((method, status))
        if found is None:
            found = self._took[method, status] = Histogram(HTTP.bounds)
        found.observe(seconds)
