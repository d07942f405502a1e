"""/api/users and /api/whoami. Hashes of passwords are in definitions alone."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.errors import NotFound
from services.common.users import User
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.leaving import delete_user
from services.mgmt.rabbitmq.forms import UserForm, UserNames
from services.mgmt.rabbitmq.grants import permissions, topic_permissions
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rabbitmq.users import put_user
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import PUT, Route, body_of, documented, put, read
from services.mgmt.rest.rabbitmq.caller import Caller, who_asks
from services.mgmt.rest.rabbitmq.listing import Query_, listed
from services.mgmt.rest.rabbitmq.paths import API
from services.mgmt.rest.users import is_there, to_put

_Rows = list[dict[str, Any]]


def user_routes(doors: Doors, broker: Broker) -> APIRouter:
    """For users who may configure: administrators."""
    router = APIRouter(prefix=f"{API}/users", tags=["RabbitMQ: users"], route_class=Route, responses=documented(404))
    house, administrates = broker.house, who_asks(doors, CONFIGURE)

    @router.get("", summary="Users", dependencies=[administrates])
    async def list_users(wanted: Query_) -> Response:
        """Those on record."""
        return await listed([_told(each) for each in await house.users.all()], wanted)

    @router.get("/without-permissions", summary="Users without permissions", dependencies=[administrates])
    async def without_permissions() -> _Rows:
        """In any virtual host."""
        may = {each.user for each in (await house.grants.all()).permissions}
        return [_told(each) for each in await house.users.all() if each.name not in may]

    @router.get("/{name:encoded}", summary="A user", dependencies=[administrates])
    async def get_user(name: str) -> dict[str, Any]:
        """With tags."""
        return _told(await _one(broker, name))

    @router.get("/{name:encoded}/permissions", summary="Permissions of a user", dependencies=[administrates])
    async def of_user(name: str) -> _Rows:
        """In each virtual host."""
        await broker.objects.known()
        await _one(broker, name)
        told = permissions(await house.grants.all(), broker.objects.virtual_hosts())
        return [row for row in told if row["user"] == name]

    @router.get(
        "/{name:encoded}/topic-permissions", summary="Topic permissions of a user", dependencies=[administrates]
    )
    async def topics_of_user(name: str) -> _Rows:
        """In each virtual host."""
        await _one(broker, name)
        return [row for row in topic_permissions(await house.grants.all()) if row["user"] == name]

    return router


def user_changes(doors: Doors, broker: Broker) -> APIRouter:
    """Asked of access by the user's name, as everywhere else."""
    router = APIRouter(prefix=f"{API}/users", tags=["RabbitMQ: users"], route_class=Route, responses=documented(404))
    asks: Caller = who_asks(doors)
    house = broker.house

    @router.put("/{name:encoded}", summary="Create or change a user", openapi_extra=body_of(UserForm), **PUT)
    async def put_one(name: str, request: Request, caller: Caller = asks) -> Response:
        """With a password, or a hash that RabbitMQ or Hopline made of one; connections of one that there was end."""
        await broker.objects.known()
        there = await is_there(house.users, name)
        caller.check(*to_put(name, (), there=there))
        told = await read(request, UserForm)
        caller.check(*to_put(name, told.tags, there=there))
        return put(created=await put_user(house, name, told, there=there))

    @router.delete("/{name:encoded}", summary="Delete a user", status_code=204)
    async def delete_one(name: str, caller: Caller = asks) -> None:
        """With what it may do."""
        caller.check(Asked(Action.DELETE, Kind.USER, name))
        await delete_user(house.users, house.grants, name)

    @router.post("/bulk-delete", summary="Delete several users", status_code=204, openapi_extra=body_of(UserNames))
    async def delete_some(request: Request, caller: Caller = asks) -> None:
        """Those that there are."""
        caller.check(Asked(Action.DELETE, Kind.USER))
        there = {each.name for each in await house.users.all()}
        for name in (await read(request, UserNames)).users:
            caller.check(Asked(Action.DELETE, Kind.USER, name))
            if name in there:
                await delete_user(house.users, house.grants, name)

    return router


def who_routes(doors: Doors) -> APIRouter:
    """/whoami."""
    router = APIRouter(prefix=API, tags=["RabbitMQ: users"], route_class=Route, responses=documented())
    asks: Caller = who_asks(doors)

    @router.get("/whoami", summary="The user that has signed in")
    async def who_am_i(caller: Caller = asks) -> dict[str, Any]:
        """Name and tags."""
        return {"name": caller.asker.name, "tags": sorted(caller.asker.tags)}

    return router


async def _one(broker: Broker, name: str) -> User:
    found = next((each for each in await broker.house.users.all() if each.name == name), None)
    if found is None:
        raise NotFound(f"no user '{name}'")
    return found


def _told(user: User) -> dict[str, Any]:
    return {"name": user.name, "tags": list(user.tags), "limits": {}}
