"""What users may do: permissions, groups, rules. Below /access: /api/permissions is of RabbitMQ's own interface."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from pydantic import BaseModel, Field

from services.common.access.action import Action
from services.common.access.asked import Asked
from services.common.access.records import (
    AclText,
    Expression,
    Group,
    Name,
    Permission,
    Terms,
    TopicPermission,
    TopicTerms,
)
from services.common.errors import SyntaxFault
from services.mgmt.access.grants import Granted, Grants
from services.mgmt.access.operations import group
from services.mgmt.access.tested import Question, Tested, Tester
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.failures import documented
from services.mgmt.rest.own import own_router

_User = Annotated[str, InPath(min_length=1, max_length=255, description="name of the user")]
_Host = Annotated[str | None, Query(max_length=255, description="virtual host; none: the permission for all of them")]
_Where = Annotated[str | None, Query(min_length=1, max_length=255, description="virtual host; none: the broker's")]


class NewTerms(Terms):
    """What a user may do: all of it is said, since what is not would be nothing."""

    configure: Expression
    write: Expression
    read: Expression


class NewTopicTerms(TopicTerms):
    """Routing keys, of which the same holds."""

    write: Expression
    read: Expression


class Members(BaseModel):
    """Of a group."""

    members: tuple[Name, ...] = Field((), description="names of users")


class Text(BaseModel):
    """Of rules."""

    text: str = Field(max_length=1 << 20, description="in the grammar of Broker-J's ACL files")


def of_group(request: Request) -> Asked:
    """What a request does to which group."""
    action = Action.DELETE if request.method == "DELETE" else Action.UPDATE
    return group(action, request.path_params["name"])


def access_routes(door: Basic, grants: Grants, tester: Tester) -> APIRouter:
    """Below /access, but for changes of groups."""
    router = own_router(door, "access", "/access")

    @router.get("", responses=documented(503), summary="What users may do")
    async def everything() -> Granted:
        """Permissions, topic permissions, groups, and rules."""
        return await grants.all()

    @router.get("/decision", responses=documented(503), summary="Whether a user may do something")
    async def decision(
        user: Annotated[str, Query(max_length=255)],
        action: Annotated[str, Query(max_length=32, description="as in Broker-J's rules, such as PUBLISH")],
        kind: Annotated[str, Query(max_length=32, description="as in Broker-J's rules, such as EXCHANGE")],
        name: Annotated[str, Query(max_length=255)] = "",
        vhost: Annotated[str, Query(max_length=255)] = "/",
        host: Annotated[str, Query(max_length=64, description="the address of the client")] = "",
        property: Annotated[list[str], Query(description="name=value, repeatable")] = [],  # noqa: A002, B006 - FastAPI copies it
        group: Annotated[list[str], Query(description="of the user, as an authentication provider names them")] = [],  # noqa: B006
        tag: Annotated[list[str], Query(description="of the user, as an authentication provider gives them")] = [],  # noqa: B006
    ) -> Tested:
        """Whether, and which rule says so."""
        return await tester.test(Question(user, action, kind, name, vhost, _pairs(property), host, group, tag))

    _permission_routes(router, grants)
    _topic_routes(router, grants)
    _rule_routes(router, grants)
    return router


def _permission_routes(router: APIRouter, grants: Grants) -> None:
    @router.put("/permissions/{user:names}", responses=documented(404, 503), summary="Set a permission")
    async def put_permission(user: _User, terms: NewTerms) -> Permission:
        """Sets what a user may do in a virtual host, or in all in which it has no permission of its own."""
        permission = Permission(user=user, **terms.model_dump())
        await grants.put_permission(permission)
        return permission

    @router.delete(
        "/permissions/{user:names}", status_code=204, responses=documented(404, 503), summary="Remove a permission"
    )
    async def clear_permission(user: _User, vhost: _Host = None) -> None:
        """Removes what is set for a virtual host, or for all of them."""
        await grants.clear_permission(user, vhost)


def _topic_routes(router: APIRouter, grants: Grants) -> None:
    @router.put("/topic-permissions/{user:names}", responses=documented(404, 503), summary="Set a topic permission")
    async def put_topic_permission(user: _User, terms: NewTopicTerms) -> TopicPermission:
        """Sets by which routing keys a user may publish to an exchange, and bind to it."""
        permission = TopicPermission(user=user, **terms.model_dump())
        await grants.put_topic_permission(permission)
        return permission

    @router.delete(
        "/topic-permissions/{user:names}",
        status_code=204,
        responses=documented(404, 503),
        summary="Remove a topic permission",
    )
    async def clear_topic_permission(user: _User, exchange: str, vhost: str = "/") -> None:
        """Of an exchange: every key is permitted again."""
        await grants.clear_topic_permission(user, vhost, exchange)


def _rule_routes(router: APIRouter, grants: Grants) -> None:
    @router.put("/acl", status_code=204, responses=documented(404, 503), summary="Load rules")
    async def put_acl(text: Text, vhost: _Where = None) -> None:
        """Replaces the rules of that virtual host, or of the broker."""
        await grants.put_acl(AclText(virtual_host=vhost, text=text.text))

    @router.delete("/acl", status_code=204, responses=documented(404, 503), summary="Remove all rules")
    async def remove_acl(vhost: _Where = None) -> None:
        """The other access controls decide from then on."""
        await grants.remove_acl(vhost)


def group_changes(door: Basic, grants: Grants) -> APIRouter:
    """Below /access/groups."""
    router = own_router(door, "access", "/access/groups")

    @router.put("/{name:names}", responses=documented(503), summary="Add or replace a group")
    async def put_group(name: Annotated[str, InPath(min_length=1, max_length=255)], members: Members) -> Group:
        """Adds a group, or replaces its members."""
        made = Group(name=name, members=members.members)
        await grants.put_group(made)
        return made

    @router.delete("/{name:names}", status_code=204, responses=documented(404, 503), summary="Delete a group")
    async def delete_group(name: Annotated[str, InPath(max_length=255)]) -> None:
        """Its members stay users."""
        await grants.delete_group(name)

    return router


def _pairs(written: list[str]) -> dict[str, str]:
    pairs = dict(each.partition("=")[::2] for each in written)
    if "" in pairs or any("=" not in each for each in written):
        raise SyntaxFault("a property is name=value")
    return pairs
