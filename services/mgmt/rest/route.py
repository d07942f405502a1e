"""Where would my message go: the route `route`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from services.common.clients.dry_run import DryRuns
from services.common.dry_run import DryRun, parse_headers
from services.mgmt.rest.failures import documented

_LONGEST = 255  # bytes in a short string of AMQP
_MOST_HEADERS = 100


def dry_run_routes(dry_runs: DryRuns) -> APIRouter:
    """Answers from a router."""
    router = APIRouter(tags=["topology"])

    @router.get("/route", responses=documented(400, 404, 503), summary="Where would my message go")
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
        return await dry_runs.route(vhost, exchange, key, parse_headers(header))

    return router
