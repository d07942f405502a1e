"""/api/vhosts."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from services.common.access import questions
from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.access.records import EVERYTHING, Permission
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.rabbitmq.columns import shown
from services.mgmt.rabbitmq.counted import Counted
from services.mgmt.rabbitmq.described import describe
from services.mgmt.rabbitmq.forms import NamedVirtualHost, VirtualHostForm
from services.mgmt.rabbitmq.grants import permissions, topic_permissions
from services.mgmt.rabbitmq.host_said import said_in
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import PUT, Route, body_of, documented, put, read
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API


def virtual_host_routes(doors: Doors, broker: Broker) -> APIRouter:
    """Users get those that they may see; administrators create and delete them."""
    router = APIRouter(prefix=f"{API}/vhosts", tags=["RabbitMQ: vhosts"], route_class=Route, responses=documented(404))
    asks: Caller = who_asks(doors)
    objects = broker.objects

    @router.get("", summary="Virtual hosts")
    async def list_virtual_hosts(wanted: Query_, caller: Caller = asks) -> Response:
        """Those that the user sees, with what waits in them."""
        await objects.known(counted=True)
        counted = Counted(broker)
        return await listed(
            [{"name": name} for name in caller.seen(objects)], wanted, lambda row: counted.host(row["name"])
        )

    @router.get("/{name:encoded}", summary="A virtual host")
    async def get_virtual_host(name: str, columns: str = "", caller: Caller = asks) -> JSONResponse:
        """With what waits in it."""
        await objects.known(counted=True)
        caller.seen(objects, name)
        return JSONResponse(shown(Counted(broker).host(name), columns))

    @router.put("/{name:encoded}", summary="Create a virtual host", openapi_extra=body_of(VirtualHostForm), **PUT)
    async def put_virtual_host(name: str, request: Request, caller: Caller = asks) -> Response:
        """201 where it is new, and its creator may do everything in it, as in RabbitMQ; 204 where it existed.

        Its description, tags and default type of queues are what is said; what is not said stays.
        """
        caller.check(Asked(Action.CREATE, Kind.VIRTUALHOST, name, name))
        await objects.known()
        said = said_in(await read(request, VirtualHostForm))
        if said and objects.has_virtual_host(name):
            caller.check(questions.update(Kind.VIRTUALHOST, name, name, said))
        created = await broker.changes.create_virtual_host(NamedVirtualHost(name=name).name)
        if created:
            await _permit(broker, caller.asker.name, name)
        await describe(broker.house, name, said)
        return put(created=created)

    @router.delete("/{name:encoded}", summary="Delete a virtual host", status_code=204)
    async def delete_virtual_host(name: str, caller: Caller = asks) -> None:
        """With everything in it."""
        caller.check(Asked(Action.DELETE, Kind.VIRTUALHOST, name, name))
        await objects.known()
        caller.seen(objects, name)
        await broker.changes.delete_virtual_host(name)

    return router


async def _permit(broker: Broker, user: str, virtual_host: str) -> None:
    """Everything in a virtual host that is new, where the user has no permission for all of them."""
    grants = broker.house.grants
    if not any(each.user == user and each.virtual_host is None for each in (await grants.all()).permissions):
        every = {"configure": EVERYTHING, "write": EVERYTHING, "read": EVERYTHING}
        await grants.put_permission(Permission(user=user, virtual_host=virtual_host, **every))


def grants_in_virtual_hosts(doors: Doors, broker: Broker) -> APIRouter:
    """What users may do in one."""
    router = APIRouter(prefix=f"{API}/vhosts", tags=["RabbitMQ: vhosts"], route_class=Route, responses=documented(404))
    asks: Caller = who_asks(doors, CONFIGURE)

    @router.get("/{name:encoded}/permissions", summary="Permissions in a virtual host")
    async def in_virtual_host(name: str, caller: Caller = asks) -> list[dict[str, Any]]:
        """Of every user."""
        await broker.objects.known()
        return permissions(await broker.house.grants.all(), caller.seen(broker.objects, name))

    @router.get("/{name:encoded}/topic-permissions", summary="Topic permissions in a virtual host")
    async def topics_in_virtual_host(name: str, caller: Caller = asks) -> list[dict[str, Any]]:
        """Of every user."""
        await broker.objects.known()
        caller.seen(broker.objects, name)
        return [row for row in topic_permissions(await broker.house.grants.all()) if row["vhost"] == name]

    return router
