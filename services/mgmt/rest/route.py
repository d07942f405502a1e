"""Where would my message go: the route `route`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from services.common.clients.dry_run import DryRuns
from services.common.dry_run import DryRun, parse_headers
from services.common.errors import SyntaxFault
from services.common.message import arguments
from services.mgmt.model.strict_json import strict
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.failures import documented
from services.mgmt.rest.own import own_router

_LONGEST = 255  # bytes in a short string of AMQP
_MOST_HEADERS = 100


def dry_run_routes(door: Basic, dry_runs: DryRuns) -> APIRouter:
    """Answers from a router."""
    router = own_router(door, "topology")

    @router.get("/route", responses=documented(404, 503), summary="Where a message would go")
    async def route(
        exchange: Annotated[str, Query(max_length=_LONGEST, description="empty: the default exchange")] = "",
        key: Annotated[str, Query(max_length=_LONGEST, description="routing key")] = "",
        vhost: Annotated[str, Query(max_length=_LONGEST, description="virtual host")] = "/",
        header: Annotated[
            list[str],
            Query(max_length=_MOST_HEADERS, description="name=text, or name:=JSON for what is no text; repeatable"),
        ] = [],  # noqa: B006 - FastAPI copies it
    ) -> DryRun:
        """The queues that would get the message, and the bindings on its way; nothing is sent."""
        return await dry_runs.route(vhost, exchange, key, _headers(header))

    return router


def _headers(given: list[str]) -> dict[str, Any]:
    """Raises SyntaxFault, also for what an answer could not tell again."""
    headers = parse_headers(given)
    try:
        strict(arguments.dump(headers) or b"{}")
    except ValueError as error:
        raise SyntaxFault(f"header: {error}") from None
    return headers
