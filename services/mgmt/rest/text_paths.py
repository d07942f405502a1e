"""What is no text is no path: refused in the words of whoever's it would be."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from fastapi.responses import JSONResponse

from services.common.errors import SyntaxFault
from services.mgmt.front import Application
from services.mgmt.rest import failures
from services.mgmt.rest.model import answers as of_model
from services.mgmt.rest.model.paths import VERSIONS
from services.mgmt.rest.names import NO_TEXT, is_text
from services.mgmt.rest.rabbitmq import answers as of_rabbitmq
from services.mgmt.rest.rabbitmq.paths import is_ours


class TextPaths:
    """ASGI: in front of all routes."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI says
        """As ASGI says."""
        raw = scope.get("raw_path") or b""
        app = self._app if is_text(raw) else _refusal(raw)
        await app(scope, receive, send)


def _refusal(path: bytes) -> JSONResponse:
    if is_ours(path):
        return of_rabbitmq.answer(400, "bad_request", NO_TEXT)
    if path.startswith(tuple(f"/api/{version}/".encode() for version in VERSIONS)):
        return of_model.answer(400, NO_TEXT)
    return failures.answer(400, SyntaxFault.__name__, NO_TEXT)
