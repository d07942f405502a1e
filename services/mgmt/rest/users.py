"""Users on record. Below /access: /api/users is RabbitMQ's. What is kept of a password is never in an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, HTTPException, Request
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from services.common.access import questions
from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.access.records import Name
from services.common.errors import NotFound
from services.mgmt.access.grants import Grants
from services.mgmt.leaving import delete_user
from services.mgmt.rest.basic import Basic, Naming, Questions
from services.mgmt.rest.failures import documented
from services.mgmt.rest.own import own_router
from services.mgmt.users import KEPT_USUALLY, Kept, Users

_Name = Annotated[str, InPath(min_length=1, max_length=255, description="of the user")]
_Kind = Annotated[str, Field(max_length=64, description="how the password is kept: a plug-in of credential_kinds")]
_Hashed = Annotated[bool, Field(description="whether a hash of that kind is given in place of a password")]
_Tags = Annotated[tuple[Name, ...], Field(max_length=64, description="what the user may do beyond messaging")]
_LoopbackOnly = Annotated[bool, Field(description="whether the user may sign in from this machine only")]

_OF_TREE = {"kind": "credentialKind", "loopback_only": "loopbackOnly"}
_WHOLE = ("password", "tags", *_OF_TREE.values())
_THERE = "hopline.user"  # of a request's scope: whether there is one of that name, as was asked about


class NewUser(BaseModel):
    """A user to be."""

    model_config = ConfigDict(extra="forbid")

    password: SecretStr
    kind: _Kind = KEPT_USUALLY.kind
    hashed: _Hashed = KEPT_USUALLY.hashed
    tags: _Tags = ()
    loopback_only: _LoopbackOnly = False


class UserChanges(BaseModel):
    """What is given is changed, the rest stays."""

    model_config = ConfigDict(extra="forbid")

    password: SecretStr | None = None
    kind: _Kind = KEPT_USUALLY.kind
    hashed: _Hashed = KEPT_USUALLY.hashed
    tags: _Tags | None = None
    loopback_only: _LoopbackOnly | None = None


class ListedUser(BaseModel):
    """A user."""

    name: str
    tags: tuple[str, ...]
    loopback_only: bool


def of_user(users: Users) -> Naming:
    """What a request does to which user; of a change also what it changes, as the tree calls it."""

    async def asked(request: Request) -> Questions:
        name: str = request.path_params["name"]
        if request.method == "DELETE":
            return [Asked(Action.DELETE, Kind.USER, name)]
        said = await _said(request)
        if request.method != "PUT":
            return [questions.update(Kind.USER, "", name, [_OF_TREE.get(each, each) for each in said])]
        request.scope[_THERE] = await is_there(users, name)
        return to_put(name, said.get("tags"), there=request.scope[_THERE])

    return asked


async def is_there(users: Users, name: str) -> bool:
    """Whether there is one of that name."""
    try:
        await users.check(name)
    except NotFound:
        return False
    return True


def to_put(name: str, tags: object, *, there: bool) -> Questions:
    """To have a user as it is told: where there is one, that changes all of it."""
    if there:
        return [questions.update(Kind.USER, "", name, _WHOLE)]
    return questions.create_user(name, [tags] if tags else [])


async def _said(request: Request) -> Mapping[str, object]:
    """A body; empty where it cannot be read: only a user who may change something is told what is wrong with it."""
    try:
        said = await request.json()
    except HTTPException:
        return {}
    return said if isinstance(said, dict) else {}


def user_list(door: Basic, users: Users) -> APIRouter:
    """All of them, at /access/users."""
    router = own_router(door, "access", "/access/users")

    @router.get("", responses=documented(503), summary="Users")
    async def list_users() -> list[ListedUser]:
        """Every user on record, by name."""
        everybody = await users.all()
        return [ListedUser(name=each.name, tags=each.tags, loopback_only=each.loopback_only) for each in everybody]

    return router


def user_changes(door: Basic, users: Users, grants: Grants) -> APIRouter:
    """Of one user, below /access/users."""
    router = own_router(door, "access", "/access/users")

    @router.put("/{name:names}", status_code=204, responses=documented(404, 409, 503), summary="Add or replace a user")
    async def put_user(name: _Name, told: NewUser, request: Request) -> None:
        """Adds a user, who has no permission yet, or replaces one, whose connections are closed."""
        password, kept, there = told.password.get_secret_value(), Kept(told.kind, told.hashed), request.scope[_THERE]
        await users.put(name, password, told.tags, loopback_only=told.loopback_only, kept=kept, there=there)

    @router.patch("/{name:names}", status_code=204, responses=documented(404, 409, 503), summary="Change a user")
    async def change_user(name: _Name, told: UserChanges) -> None:
        """Changes what is given; the user's connections end."""
        password = told.password.get_secret_value() if told.password else None
        kept = Kept(told.kind, told.hashed)
        await users.change(name, password=password, kept=kept, tags=told.tags, loopback_only=told.loopback_only)

    @router.delete("/{name:names}", status_code=204, responses=documented(404, 503), summary="Delete a user")
    async def remove_user(name: _Name) -> None:
        """Deletes a user, and what it may do; its connections end."""
        await delete_user(users, grants, name)

    return router
