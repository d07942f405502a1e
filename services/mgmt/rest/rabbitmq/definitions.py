"""/api/definitions: all that is here in one file, and what was exported elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from services.common.definitions import Taken
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.rabbitmq.giving import give, give_virtual_host
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rabbitmq.taking import take
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.bodies import body
from services.mgmt.rest.rabbitmq.answers import Route, documented
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.paths import API

_MOST: Final = 64 << 20
"""Bytes: of 200,000 queues."""
_IMPORT: Final[Mapping[str, Any]] = {
    "responses": {200: {"model": Taken}, 204: {"description": "All of it is taken"}},
    "openapi_extra": {"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}},
}


def definition_routes(doors: Doors, broker: Broker) -> APIRouter:
    """For users who may configure: administrators."""
    asks, imports = who_asks(doors, CONFIGURE), who_asks(doors, CONFIGURE, _MOST)
    router = APIRouter(
        prefix=f"{API}/definitions", tags=["RabbitMQ: definitions"], route_class=Route, responses=documented(404)
    )

    @router.get("", summary="Export", dependencies=[asks])
    async def export() -> dict[str, Any]:
        """With hashes of passwords."""
        return await give(broker.house, broker.objects)

    @router.get("/{vhost:encoded}", summary="Export a virtual host")
    async def export_virtual_host(vhost: str, caller: Caller = asks) -> dict[str, Any]:
        """Names in it do not say where they are."""
        await broker.objects.known()
        caller.seen(broker.objects, vhost)
        return await give_virtual_host(broker.house, broker.objects, vhost)

    @router.post("", summary="Import", dependencies=[imports], **_IMPORT)
    async def import_all(request: Request) -> Response:
        """204 where all of it could be taken; 200, and what could not and why, where not."""
        return _told(await take(broker, await body(request)))

    @router.post("/{vhost:encoded}", summary="Import into a virtual host", **_IMPORT)
    async def import_virtual_host(vhost: str, request: Request, caller: Caller = imports) -> Response:
        """What is in the file comes into this one, wherever it was."""
        await broker.objects.known()
        caller.seen(broker.objects, vhost)
        return _told(await take(broker, await body(request), vhost))

    return router


def _told(taken: Taken) -> Response:
    return JSONResponse(taken.model_dump()) if taken.left_out else Response(status_code=204)
