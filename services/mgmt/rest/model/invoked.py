"""What an operation answers, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from fastapi import Response
from fastapi.responses import JSONResponse, StreamingResponse

from services.mgmt.model.answer import Answer
from services.mgmt.rest.pieces import in_turns, piecewise

_MANY: Final = 100


async def answered(result: Any) -> Response:  # noqa: ANN401 - each operation its own
    """Of whatever it gives: a long list is written a piece at a time."""
    told = result if isinstance(result, Answer) else Answer(result)
    if told.data is not None:
        return Response(told.data, headers=dict(told.headers))
    if told.pieces is not None:
        return StreamingResponse(told.pieces, headers=dict(told.headers))
    if isinstance(told.value, list) and len(told.value) > _MANY:
        return piecewise(await in_turns(_parts(told.value)), "application/json", told.headers)
    return JSONResponse(told.value, headers=dict(told.headers))


def _parts(values: list[Any]) -> Iterator[str]:
    separator = "["
    for first in range(0, len(values), _MANY):
        yield separator + json.dumps(values[first : first + _MANY], ensure_ascii=False, allow_nan=False)[1:-1]
        separator = ","
    yield "]"
