"""What answers over HTTP: health by itself, all else by an application that is made at the first request for it.

An idle mgmt is asked for its health and nothing else, and what the application imports takes 10 MB and half a second.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from services.mgmt.stack_health import Report, StackHealth

_HEALTH = "/healthz"
_ASKING = ("GET", "HEAD")
_JSON = (b"content-type", b"application/json")

Application = Callable[[Any, Any, Any], Awaitable[None]]
"""ASGI 3: what is asked, what comes of it, and where the answer goes."""

_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Front:
    """An application itself."""

    def __init__(self, health: StackHealth, make: Callable[[], Application]) -> None:
        """`make` is called once, in a thread: what is under way meanwhile does not wait for it."""
        self._health = health
        self._make = make
        self._making: asyncio.Future[Application] | None = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: object, send: _Send) -> None:
        """As ASGI says."""
        if scope["type"] == "http" and scope["path"] == _HEALTH and scope["method"] in _ASKING:
            report = await self._health.report()
            return await _answer(send, 200 if report.ok else 503, _body(report))
        application = await self._whole()
        return await application(scope, receive, send)

    async def _whole(self) -> Application:
        if self._making is None:
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        # A caller that hangs up does not cancel it for the others.
        return await asyncio.shield(self._making)


def _body(report: Report) -> dict[str, object]:
    body: dict[str, object] = {
        "status": "ok" if report.ok else "unavailable",
        "services": report.services,
        "away": report.away,
        "members": report.members,
        "notes": report.notes,
    }
    body |= {"does": report.does} if report.does else {}
    return body | ({"restored": report.restored} if report.restored else {})


async def _answer(send: _Send, status: int, body: dict[str, object]) -> None:
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    length = (b"content-length", b"%d" % len(data))
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length]})
    await send({"type": "http.response.body", "body": data})
