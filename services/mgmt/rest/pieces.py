"""Large answers, made and sent a piece at a time: others have their turn in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final

from fastapi import Response
from fastapi.responses import StreamingResponse

from services.common.clock import monotonic
from services.mgmt.turns import TURN

_PIECE: Final = 1 << 18  # bytes that are written at once


async def in_turns(parts: Iterable[str]) -> list[bytes]:
    """All of a text, in pieces, though making its parts takes long."""
    pieces, gathered, size, ends = list[bytes](), list[str](), 0, monotonic() + TURN
    for part in parts:
        gathered.append(part)
        size += len(part)
        if size >= _PIECE:
            pieces.append("".join(gathered).encode())
            gathered, size = [], 0
        if monotonic() >= ends:
            await asyncio.sleep(0)
            ends = monotonic() + TURN
    return [*pieces, "".join(gathered).encode()]


def piecewise(pieces: list[bytes], media_type: str, headers: Mapping[str, str]) -> Response:
    """An answer of them: to a client that reads slowly, no more is written than it reads."""
    if len(pieces) == 1:
        return Response(pieces[0], headers=dict(headers), media_type=media_type)
    length = {"Content-Length": str(sum(map(len, pieces)))}
    return StreamingResponse(_each(pieces), headers={**headers, **length}, media_type=media_type)


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
