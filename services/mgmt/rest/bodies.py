"""Bodies of requests, bounded, so that no client can fill this process's memory.

A body is read before sign-in and access are checked: while a slow one comes, its user may be changed or deleted. But
little is kept until then, of one body and of all together: what comes beyond that is read only for a user who has
signed in and may use the path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from fastapi import HTTPException, Request
from starlette.requests import ClientDisconnect

from services.mgmt.model.strict_json import strict

MOST: Final = 1 << 20
"""Bytes of what describes a thing."""
_OF_ONE: Final = 1 << 16
_OF_ALL: Final = 1 << 24
"""Bytes of bodies whose senders have not signed in yet."""
_PATIENCE: Final = 30.0  # seconds, and one for each mebibyte that there may be
_KEY: Final = "hopline.body"  # of a request's scope


class _Strangers:
    """Counts the bytes that are kept of clients that have not signed in yet."""

    def __init__(self) -> None:
        self._all = 0

    @contextmanager
    def one(self) -> Iterator[Callable[[int], bool]]:
        """Whether there is room for so many more of one of them."""
        its = 0

        def keep(more: int) -> bool:
            nonlocal its
            if its + more > _OF_ONE or self._all + more > _OF_ALL:
                return False
            its, self._all = its + more, self._all + more
            return True

        try:
            yield keep
        finally:
            self._all -= its


_STRANGERS: Final = _Strangers()  # there is one memory in a process


async def _anyone() -> None:
    """Lets every client in."""


async def body(request: Request, most: int = MOST, known: Callable[[], Awaitable[object]] = _anyone) -> bytes:
    """Of a request, read once. Raises HTTPException: 413 as soon as it is longer, 408 when it takes too long.

    `known` raises where the client may not send it, and is called before much is kept.
    """
    if _KEY not in request.scope:
        try:
            async with asyncio.timeout(_PATIENCE + most / MOST):
                request.scope[_KEY] = await _read(request, most, known)
        except ClientDisconnect:
            raise HTTPException(400, "the client closed the connection") from None  # no client reads it
        except TimeoutError:
            raise HTTPException(408, "the body was not complete in time", {"Connection": "close"}) from None
    found: bytes = request.scope[_KEY]
    return found


async def _read(request: Request, most: int, known: Callable[[], Awaitable[object]]) -> bytes:
    parts, size, is_known = list[bytes](), 0, False
    with _STRANGERS.one() as keep:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise HTTPException(413, f"a body has at most {most} bytes here")
            if not is_known and not keep(len(part)):
                await known()
                is_known = True
            parts.append(part)
    return b"".join(parts)


def json_in(data: bytes) -> Any:  # noqa: ANN401 - whatever it says
    """Of a body. Raises HTTPException (400) for what is no JSON."""
    try:
        return strict(data)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is no JSON: {error}") from None
