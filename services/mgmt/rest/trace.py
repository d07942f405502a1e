"""Where did my message go: the route `trace`."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as InPath

from services.common.clock import epoch_ms
from services.common.errors import NotFound, SyntaxFault
from services.common.question import (
    FATES,
    LONGEST_ID,
    LONGEST_PATTERN,
    MOST_JOURNEYS,
    WHERE_CONCLUDED,
    Sought,
    moment_us,
)
from services.common.trace import Trace, nothing
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.failures import documented
from services.mgmt.rest.own import own_router

_WHEN = (
    "90s, 15m, 2h or 1d ago, or ISO 8601, in UTC unless it says otherwise: when its fate was, where that is asked for, "
    "else its delivery, where a consumer is, else its publish"
)

_PUBLISHER = (
    "the publisher: the name of its application, its user, address or connection; of a dead letter, who published it "
    "at first"
)


def _pattern(description: str) -> Any:  # noqa: ANN401 - as FastAPI's
    return Query(max_length=LONGEST_PATTERN, description=f"{description}; with * and ?")


def trace_routes(door: Basic, look_up: LookUp) -> APIRouter:
    """Answers from the ledger."""
    router = own_router(door, "tracing")

    @router.get("/trace/{id:names}", responses=documented(404, 503), summary="Where a message went")
    async def trace(
        id: Annotated[  # noqa: A002 - the parameter's name in the API
            str, InPath(max_length=LONGEST_ID, description="message id, correlation id, trace id or uid")
        ],
        journeys: Annotated[int, Query(ge=1, le=MOST_JOURNEYS, description="at most so many messages")] = 10,
        everything: Annotated[
            bool, Query(description="search all that is on record, not only the newest day that has any")
        ] = False,
    ) -> Trace:
        """Every stage of every message that has the id; that none has it is said after a second and a half."""
        return await found(look_up, id, journeys, everything=everything)

    @router.get(
        "/trace",
        dependencies=[Depends(_no_others)],
        responses=documented(404, 503),
        summary="The newest messages to which all of this applies",
    )
    async def search(
        vhost: Annotated[str, Query(max_length=LONGEST_PATTERN, description="virtual host")] = "/",
        queue: Annotated[str, _pattern("queue")] = "",
        client: Annotated[
            str,
            _pattern(_PUBLISHER),
        ] = "",
        consumer: Annotated[str, _pattern("the consumer: its tag, or as `client`")] = "",
        key: Annotated[str, _pattern("routing key")] = "",
        fate: Annotated[str, Query(description=f"one of {', '.join(FATES)}; {WHERE_CONCLUDED}")] = "",
        since: Annotated[str, Query(description=_WHEN)] = "",
        until: Annotated[str, Query(description="the same; before it")] = "",
        journeys: Annotated[int, Query(ge=1, le=MOST_JOURNEYS, description="at most so many messages")] = 10,
    ) -> Trace:
        """The newest messages to which all of it applies, each with its whole way."""
        times = {"since_us": _moment(since), "until_us": _moment(until)}
        sought = Sought(vhost, queue, client, consumer, key, fate, **times)
        trace = await look_up.search(sought, journeys)
        if not trace.journeys:
            raise NotFound(nothing(sought, trace))
        return trace

    return router


def _no_others(request: Request) -> None:
    """Raises SyntaxFault for a parameter that there is not: without it, another question would be answered."""
    known = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    if others := sorted(set(request.query_params) - set(known)):
        raise SyntaxFault(f"no parameter is called '{others[0]}'; there are {', '.join(known)}")


def _moment(text: str) -> int:
    try:
        return moment_us(text, epoch_ms() * 1000, UTC) if text else 0
    except ValueError as error:
        raise SyntaxFault(str(error)) from None


async def found(look_up: LookUp, asked: str, journeys: int, *, everything: bool, payloads: bool = False) -> Trace:
    """As `LookUp.trace`; raises NotFound when nothing is on record."""
    trace = await look_up.trace(asked, journeys, everything=everything, payloads=payloads)
    if not trace.journeys:
        raise NotFound(nothing(asked, trace))
    return trace
