"""Definitions asked of RabbitMQ's management over HTTP."""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

_PATH: Final = "/api/definitions"
_GUEST: Final = "guest"
_DEADLINE: Final = 60.0  # seconds


def user_of(url: str) -> tuple[str, str]:
    """User and password in the URL; "guest" for what it does not name."""
    parts = urlsplit(url)
    return unquote(parts.username or _GUEST), unquote(parts.password or "")


def address_of(url: str) -> str:
    """The URL without user and password; one without a path gets that of definitions."""
    parts = urlsplit(url)
    path = parts.path if parts.path.strip("/") else _PATH
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, parts.query, ""))


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: no other server gets the password."""

    def redirect_request(self, *_: object) -> None:
        """To nowhere."""


def fetched(url: str, user: str, password: str) -> bytes:
    """Raises OSError, with what the other side says where it says no."""
    request = urllib.request.Request(address_of(url))  # noqa: S310 - whoever calls has looked
    request.add_header("Authorization", f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}")
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=_DEADLINE) as answer:
            data: bytes = answer.read()
            return data
    except urllib.error.HTTPError as failure:
        with failure:
            raise OSError(f"{failure.code} {failure.reason}") from None
    except HTTPException as failure:  # 5672 is AMQP's port
        raise OSError(f"that is no address of RabbitMQ's management ({failure!r})") from None
