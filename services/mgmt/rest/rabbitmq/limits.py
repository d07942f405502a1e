"""/api/vhost-limits and /api/user-limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request

from services.common.errors import NotFound, SyntaxFault
from services.common.limits import USER, VIRTUAL_HOST, Subject
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.rabbitmq.forms import LimitForm
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import Route, body_of, documented, read
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.paths import API

_Rows = list[dict[str, Any]]


def virtual_host_limit_routes(doors: Doors, broker: Broker) -> APIRouter:
    """A user who may see a virtual host sees its limits; administrators set them."""
    router = APIRouter(
        prefix=f"{API}/vhost-limits", tags=["RabbitMQ: limits"], route_class=Route, responses=documented(404)
    )
    asks: Caller = who_asks(doors)

    async def of(hosts: Iterable[str]) -> _Rows:
        found = await broker.house.grants.limits(VIRTUAL_HOST)
        return [{"vhost": name, "value": found[name]} for name in hosts if name in found]

    @router.get("", summary="Limits of virtual hosts")
    async def list_limits(caller: Caller = asks) -> _Rows:
        """Of those that the user sees, and that have some."""
        await broker.objects.known()
        return await of(caller.seen(broker.objects))

    @router.get("/{name:encoded}", summary="Limits of a virtual host")
    async def get_limits(name: str, caller: Caller = asks) -> _Rows:
        """None, or one."""
        await broker.objects.known()
        return await of(caller.seen(broker.objects, name))

    _changes(router, doors, broker, VIRTUAL_HOST)
    return router


def user_limit_routes(doors: Doors, broker: Broker) -> APIRouter:
    """For users who may configure: administrators."""
    router = APIRouter(
        prefix=f"{API}/user-limits", tags=["RabbitMQ: limits"], route_class=Route, responses=documented(404)
    )
    administrates = who_asks(doors, CONFIGURE)

    async def rows() -> _Rows:
        found = await broker.house.grants.limits(USER)
        return [{"user": name, "value": values} for name, values in found.items()]

    @router.get("", summary="Limits of users", dependencies=[administrates])
    async def list_limits() -> _Rows:
        """Of those that have some."""
        return await rows()

    @router.get("/{name:encoded}", summary="Limits of a user", dependencies=[administrates])
    async def get_limits(name: str) -> _Rows:
        """None, or one."""
        return [row for row in await rows() if row["user"] == name]

    _changes(router, doors, broker, USER)
    return router


def _changes(router: APIRouter, doors: Doors, broker: Broker, kind: str) -> None:
    one, administrates = "/{name:encoded}/{limit:encoded}", who_asks(doors, CONFIGURE)
    body = body_of(LimitForm)

    @router.put(one, summary="Set a limit", status_code=204, openapi_extra=body, dependencies=[administrates])
    async def put_limit(name: str, limit: str, request: Request) -> None:
        """Counts from now on: open connections and existing queues stay. Negative: no limit."""
        told = await read(request, LimitForm)
        try:
            await broker.house.grants.put_limits(Subject(kind, name), {limit: told.value})
        except NotFound as error:  # as for permissions
            raise SyntaxFault(error.text) from None

    @router.delete(one, summary="Remove a limit", status_code=204, dependencies=[administrates])
    async def clear_limit(name: str, limit: str) -> None:
        """404 where it is not set."""
        await broker.house.grants.clear_limit(Subject(kind, name), limit)
