"""Where did my message go: the route `trace`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as InPath

from services.common.errors import NotFound
from services.common.question import LONGEST_ID, MOST_JOURNEYS
from services.common.trace import Trace, nothing
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.rest.failures import documented


def trace_routes(look_up: LookUp) -> APIRouter:
    """Answers from the ledger."""
    router = APIRouter(tags=["tracing"])

    @router.get("/trace/{id:path}", responses=documented(400, 404, 503), summary="Where did my message go")
    async def trace(
        id: Annotated[  # noqa: A002 - the parameter's name in the API
            str, InPath(max_length=LONGEST_ID, description="message id, correlation id, trace id or uid")
        ],
        journeys: Annotated[int, Query(ge=1, le=MOST_JOURNEYS, description="at most so many messages")] = 10,
        everything: Annotated[bool, Query(description="of all time, not of the newest day that has any")] = False,
    ) -> Trace:
        """Every stage of every message that has the id, before and after every dead-lettering."""
        return await found(look_up, id, journeys, everything=everything)

    return router


async def found(look_up: LookUp, asked: str, journeys: int, *, everything: bool) -> Trace:
    """As `LookUp.trace`; raises NotFound when nothing is on record."""
    trace = await look_up.trace(asked, journeys, everything=everything)
    if not trace.journeys:
        raise NotFound(nothing(asked, trace))
    return trace
