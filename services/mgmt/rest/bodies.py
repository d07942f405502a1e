"""Bodies of requests, as long as they may be: who may ask anything must not fill this process's memory."""

from __future__ import annotations

from typing import Any, Final

from fastapi import HTTPException, Request

from services.mgmt.model.strict_json import strict

MOST: Final = 1 << 20
"""Bytes of what describes a thing."""


async def body(request: Request, most: int = MOST) -> bytes:
    """Raises HTTPException (413) as soon as it is longer."""
    parts, size = list[bytes](), 0
    async for part in request.stream():
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
