"""Asking mgmt over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

Get = Callable[..., Awaitable[tuple[int, Any, Any]]]

_GUEST = "guest:guest"
_LONGEST = 60  # seconds: mgmt takes ten to answer that a service is away, and a busy machine many


def asking(port: int) -> Get:
    """(status, body, headers) of a path, asked for as a user: name:password, or bytes for the header as it is.

    What is sent is JSON, or bytes as they are.
    """

    def ask(
        path: str, user: str | bytes | None = _GUEST, method: str = "GET", body: object = None
    ) -> tuple[int, Any, Any]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        if user is not None:
            given = user if isinstance(user, bytes) else base64.b64encode(user.encode())
            request.add_header("Authorization", f"Basic {given.decode()}")
        try:
            with urllib.request.urlopen(request, timeout=_LONGEST) as answer:
                return answer.status, _read(answer.headers, answer.read()), answer.headers
        except urllib.error.HTTPError as failure:
            with failure:
                return failure.code, json.load(failure), failure.headers

    return lambda *arguments: asyncio.to_thread(ask, *arguments)


def _read(headers: Any, body: bytes) -> Any:
    is_text = headers.get("Content-Type", "").startswith("text/plain")
    return body.decode() if is_text else json.loads(body or b"null")
