"""Bodies of requests, as long as they may be: who may ask anything must not fill this process's memory.

A body is read before it is asked who sends it, and whether they may: who sends it slowly would be somebody else when it
has come, or nobody any more. What comes beyond the usual is read of those alone who have signed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import HTTPException, Request

from services.mgmt.model.strict_json import strict

MOST: Final = 1 << 20
"""Bytes of what describes a thing."""
_PATIENCE: Final = 30.0  # seconds, and one for each mebibyte that there may be
_KEY: Final = "hopline.body"  # of a request's scope


async def _nobody() -> None:
    """Nobody is asked for."""


async def body(request: Request, most: int = MOST, known: Callable[[], Awaitable[object]] = _nobody) -> bytes:
    """Of a request, read once. Raises HTTPException: 413 as soon as it is longer, 408 when it takes too long.

    `known` raises where nobody known sends it, and is asked before more than MOST is kept.
    """
    if _KEY not in request.scope:
        try:
            async with asyncio.timeout(_PATIENCE + most / MOST):
                request.scope[_KEY] = await _read(request, most, known)
        except TimeoutError:
            raise HTTPException(408, "the body does not come to its end", {"Connection": "close"}) from None
    found: bytes = request.scope[_KEY]
    return found


async def _read(request: Request, most: int, known: Callable[[], Awaitable[object]]) -> bytes:
    parts, size = list[bytes](), 0
    async for part in request.stream():
        if size <= MOST < size + len(part) <= most:
            await known()
        size += len(part)
        if size > most:
            raise HTTPException(413, f"a body has at most {most} bytes here")
        parts.append(part)
    return b"".join(parts)


def json_in(data: bytes) -> Any:  # noqa: ANN401 - whatever it says
    """Of a body. Raises HTTPException (400) for what is no JSON."""
    try:
        return strict(data)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is no JSON: {error}") from None
