"""Web pages change nothing: a browser that has a password cached sends it for any page that makes a request.

Browsers say which page that is, and no page can have them say otherwise; what is no browser says nothing of it.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any, Final

from services.mgmt.front import Application
from services.mgmt.rest.refusals import refusal

NOT_FROM_PAGES: Final = "the request comes from a web page of another site, which may change nothing here"
_LOOKING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OTHERS: Final = frozenset({b"cross-site", b"same-site"})
_PORTS: Final = {"http": ":80", "https": ":443"}
"""Ports that a URL may leave out."""


class OwnSite:
    """ASGI: in front of all routes."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI says
        """As ASGI says."""
        app = self._app
        if scope["type"] == "http" and scope["method"] not in _LOOKING and is_foreign(dict(scope["headers"])):
            app = refusal(scope.get("raw_path") or b"", HTTPStatus.FORBIDDEN, NOT_FROM_PAGES)
        await app(scope, receive, send)


def is_foreign(headers: dict[bytes, bytes]) -> bool:
    """Whether a page of another site asks. A proxy may have ended TLS before: so schemes may differ."""
    if headers.get(b"sec-fetch-site") in _OTHERS:
        return True
    origin = headers.get(b"origin")
    return origin is not None and not _is_of(origin.decode("latin-1"), headers.get(b"host", b"").decode("latin-1"))


def _is_of(origin: str, host: str) -> bool:
    scheme, _, place = origin.lower().partition("://")
    port = _PORTS.get(scheme, "")
    return bool(place) and place.removesuffix(port) == host.lower().removesuffix(port)
