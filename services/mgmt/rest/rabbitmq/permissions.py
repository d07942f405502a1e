"""/api/permissions and /api/topic-permissions."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from fastapi import APIRouter, Request, Response

from services.common.access.records import Permission, TopicPermission
from services.common.errors import NotFound, SyntaxFault
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.rabbitmq.forms import PermissionForm, TopicPermissionForm
from services.mgmt.rabbitmq.grants import permissions, topic_permissions
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import PUT, Route, body_of, documented, put, read
from services.mgmt.rest.rabbitmq.caller import who_asks
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API

_ONE = "/{vhost:encoded}/{user:encoded}"


def permission_routes(doors: Doors, broker: Broker) -> APIRouter:
    """For users who may configure: administrators."""
    router = _router("/permissions", doors)
    house = broker.house

    async def rows() -> list[dict[str, Any]]:
        await broker.objects.known()
        return permissions(await house.grants.all(), broker.objects.virtual_hosts())

    @router.get("", summary="Permissions")
    async def list_permissions(wanted: Query_) -> Response:
        """In each virtual host: one that counts in all of them is told in each."""
        return await listed(await rows(), wanted)

    @router.get(_ONE, summary="Permission of a user in a virtual host")
    async def get_permission(vhost: str, user: str) -> dict[str, Any]:
        """The one that counts there."""
        found = [row for row in await rows() if (row["vhost"], row["user"]) == (vhost, user)]
        if not found:
            raise NotFound(f"user '{user}' has no permission in vhost '{vhost}'")
        return found[0]

    @router.put(_ONE, summary="Set a permission", openapi_extra=body_of(PermissionForm), **PUT)
    async def put_permission(vhost: str, user: str, request: Request) -> Response:
        """In one virtual host."""
        told = await read(request, PermissionForm)
        former = {each.key for each in (await house.grants.all()).permissions}
        permission = Permission(user=user, virtual_host=vhost, **told.model_dump())
        await _set(house.grants.put_permission(permission))
        return put(created=permission.key not in former)

    @router.delete(_ONE, summary="Remove a permission", status_code=204)
    async def clear_permission(vhost: str, user: str) -> None:
        """In one virtual host. What is set for all of them is not cleared here, and 404."""
        await house.grants.clear_permission(user, vhost)

    return router


def topic_permission_routes(doors: Doors, broker: Broker) -> APIRouter:
    """For users who may configure: administrators."""
    router = _router("/topic-permissions", doors)
    house = broker.house

    async def of(vhost: str, user: str) -> list[dict[str, Any]]:
        told = topic_permissions(await house.grants.all())
        found = [row for row in told if (row["vhost"], row["user"]) == (vhost, user)]
        if not found:
            raise NotFound(f"user '{user}' has no topic permission in vhost '{vhost}'")
        return found

    @router.get("", summary="Topic permissions")
    async def list_topic_permissions(wanted: Query_) -> Response:
        """In each virtual host."""
        return await listed(topic_permissions(await house.grants.all()), wanted)

    @router.get(_ONE, summary="Topic permissions of a user in a virtual host")
    async def get_topic_permissions(vhost: str, user: str) -> list[dict[str, Any]]:
        """One for each exchange."""
        return await of(vhost, user)

    @router.put(_ONE, summary="Set a topic permission", openapi_extra=body_of(TopicPermissionForm), **PUT)
    async def put_topic_permission(vhost: str, user: str, request: Request) -> Response:
        """For one exchange."""
        told = await read(request, TopicPermissionForm)
        former = {each.key for each in (await house.grants.all()).topic_permissions}
        permission = TopicPermission(user=user, virtual_host=vhost, **told.model_dump())
        await _set(house.grants.put_topic_permission(permission))
        return put(created=permission.key not in former)

    @router.delete(_ONE, summary="Remove topic permissions", status_code=204)
    async def clear_topic_permissions(vhost: str, user: str) -> None:
        """For every exchange."""
        for row in await of(vhost, user):
            await house.grants.clear_topic_permission(user, vhost, row["exchange"])

    return router


async def _set(work: Awaitable[None]) -> None:
    """A virtual host that is not there is no path that is not there: RabbitMQ answers 400."""
    try:
        await work
    except NotFound as error:
        raise SyntaxFault(error.text) from None


def _router(prefix: str, doors: Doors) -> APIRouter:
    return APIRouter(
        prefix=f"{API}{prefix}",
        tags=["RabbitMQ: permissions"],
        route_class=Route,
        responses=documented(404),
        dependencies=[who_asks(doors, CONFIGURE)],
    )
