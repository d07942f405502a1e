"""Definitions asked of RabbitMQ's management over HTTP."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

_PATH: Final = "/api/definitions"
_HOSTS: Final = "/api/vhosts"
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


def fetched(url: str, user: str, password: str, warn: Callable[[str], object] = lambda _: None) -> bytes:
    """Raises OSError, with what the other side says where it says no. `warn` gets a line of what is not told."""
    address = address_of(url)
    data = _asked(address, user, password)
    if urlsplit(address).path.endswith(_PATH):
        try:
            return with_metadata(data, _asked(_hosts_of(address), user, password))
        except OSError as error:  # who may see the one and not the other gets that
            warn(f"descriptions and tags of virtual hosts may be missing: {_HOSTS} is not told: {error}")
    return data


def _hosts_of(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=parts.path.removesuffix(_PATH) + _HOSTS))


def with_metadata(definitions: bytes, hosts: bytes) -> bytes:
    """Definitions with what is said of virtual hosts: 3.10 gives it on the command line alone."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):  # another's: who takes them says what is wrong
        told = json.loads(definitions)
        metadata = {each.get("name"): each.get("metadata") for each in json.loads(hosts)}
        for each in told["vhosts"]:
            if (its := metadata.get(each.get("name"))) is not None:
                each["metadata"] = each.get("metadata") or its
        return json.dumps(told).encode()
    return definitions


def _asked(address: str, user: str, password: str) -> bytes:
    request = urllib.request.Request(address)  # noqa: S310 - whoever calls has looked
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
