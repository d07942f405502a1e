"""What the whole stack counts, as Prometheus reads it: the routes `metrics`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response

from services.mgmt.metrics.exposition import exposition
from services.mgmt.metrics.gather import Gathering
from services.mgmt.rest.failures import documented
from services.mgmt.rest.scraper import Scraper

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {}}, "description": "Prometheus's text format, or OpenMetrics"}
}

_Names = Annotated[Sequence[str], Query(alias="name[]", max_length=100, description="only these metrics; repeatable")]


def metric_routes(scraper: Scraper, gathering: Gathering) -> APIRouter:
    """Paths as RabbitMQ's plug-in has them."""
    router = APIRouter(tags=["metrics"], dependencies=[Depends(scraper)])

    async def answer(accept: str, names: Sequence[str], *, per_object: bool) -> Response:
        told = await gathering.gather(per_object=per_object)
        page, content_type = await asyncio.to_thread(exposition, told, accept, frozenset(names))
        return Response(page, media_type=content_type)

    responses = {**documented(400, 401, 403, 422), **_TEXT}

    @router.get("/metrics", responses=responses, summary="Metrics of the whole stack", response_class=Response)
    async def metrics(names: _Names = (), accept: Annotated[str, Header()] = "") -> Response:
        """Of every process, for Prometheus to scrape."""
        return await answer(accept, names, per_object=False)

    @router.get(
        "/metrics/per-object",
        responses=responses,
        summary="Metrics, also of each queue, exchange and connection",
        response_class=Response,
    )
    async def each(names: _Names = (), accept: Annotated[str, Header()] = "") -> Response:
        """Each queue; exchanges and connections where the settings say so. Large where there are many."""
        return await answer(accept, names, per_object=True)

    return router
