"""Bodies of requests, as long as they may be: who may ask anything must not fill this process's memory."""

from __future__ import annotations

from typing import Final

from fastapi import HTTPException, Request

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
