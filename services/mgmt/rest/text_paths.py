"""Paths that are no text are refused, in the form of the API that the path would belong to."""

from __future__ import annotations

from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

from services.mgmt.front import Application
from services.mgmt.rest.names import NO_TEXT, is_text
from services.mgmt.rest.refusals import refusal


class TextPaths:
    """ASGI: in front of all routes."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI says
        """As ASGI says."""
        raw = scope.get("raw_path") or b""
        app = self._app if is_text(raw) else refusal(raw, HTTPStatus.BAD_REQUEST, NO_TEXT)
        await app(scope, receive, send)
