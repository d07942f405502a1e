"""What the whole stack counts, as Prometheus reads it: the routes `metrics`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from services.mgmt.metrics.exposition import exposition
from services.mgmt.metrics.gather import Gathering
from services.mgmt.rest.failures import documented

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {}}, "description": "Prometheus's text format, or OpenMetrics"}
}


def metric_routes(gathering: Gathering) -> APIRouter:
    """Paths as RabbitMQ's plug-in has them."""
    router = APIRouter(tags=["metrics"])

    async def answer(accept: str, *, per_object: bool) -> Response:
        told = await gathering.gather(per_object=per_object)
        page, content_type = await asyncio.to_thread(exposition, told, accept)
        return Response(page, media_type=content_type)

    responses = {**documented(401, 403), **_TEXT}

    @router.get("/metrics", responses=responses, summary="What the whole stack counts", response_class=Response)
    async def metrics(accept: Annotated[str, Header()] = "") -> Response:
        """Of every process, for Prometheus to scrape."""
        return await answer(accept, per_object=False)

    @router.get(
        "/metrics/per-object", responses=responses, summary="The same, and each single queue", response_class=Response
    )
    async def each(accept: Annotated[str, Header()] = "") -> Response:
        """Large where there are many queues."""
        return await answer(accept, per_object=True)

    return router
