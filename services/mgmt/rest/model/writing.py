"""PUT, POST and DELETE: what is at a path is created, updated, deleted, or carries out an operation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import HTTPException, Request, Response
from fastapi.responses import JSONResponse

from services.common.access.action import Action
from services.common.authentication.principal import Principal
from services.common.errors import BrokerError, NotFound
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import AlreadyExists, IllegalConfiguration, NotOffered
from services.mgmt.model.rendering import Options, rendered
from services.mgmt.model.wanted import arguments_for, to_create, to_update
from services.mgmt.rest.bodies import body
from services.mgmt.rest.model.asking import Asking
from services.mgmt.rest.model.paths import path_of
from services.mgmt.rest.model.reading import Reading
from services.mgmt.tree.house import KEPT_HERE, MOST
from services.mgmt.tree.tree import ANY

_DELETED: Final = "DELETED"
_OF_ALL: Final = frozenset({"getStatistics", "setContextVariable", "removeContextVariable"})


class Writing:
    """Changes of one category."""

    def __init__(self, asking: Asking, category: str) -> None:
        self._asking = asking
        self._tree = asking.tree
        self._category = category
        self._keeper = self._tree.categories[category]
        self._kind = self._keeper.kind
        self._reading = Reading(asking, category)

    async def put(self, request: Request, principal: Principal) -> Response:
        """At a whole path: creates, or updates; at the path of its parent: creates what the body names."""
        return await self._change(request, principal, may_create=True)

    async def post(self, request: Request, principal: Principal) -> Response:
        """At a whole path: updates; at the path of its parent: creates; one name more is an operation."""
        return await self._change(request, principal, may_create=False)

    async def _change(self, request: Request, principal: Principal, *, may_create: bool) -> Response:
        names, line = self._asking.names(request), self._tree.line(self._category)
        said, fault = await _body(request)
        await self._tree.ready(counted=self._keeper.counted)
        if len(names) == len(line) + 1 and not may_create:
            return await self._invoke(request, principal, names, said, fault)
        by_parent = bool(line) and len(names) == len(line) - 1
        path = (*names, str(said.get("name", ""))) if by_parent else names
        found = None if by_parent else self._found(path)
        wanted, refusal = self._wanted(found, path, said)
        await self._may(request, principal, _action(found, wanted), path, wanted)
        if fault:
            raise HTTPException(HTTPStatus.BAD_REQUEST, fault)
        if found is None and not by_parent and not may_create:
            raise NotFound(f"no {self._kind.category} '{path[-1]}'")
        if refusal:
            raise refusal
        return await (self._update(found, wanted, principal) if found else self._create(principal, path, wanted))

    def _wanted(
        self, found: ConfiguredObject | None, path: Sequence[str], said: Mapping[str, Any]
    ) -> tuple[dict[str, Any], BrokerError | None]:
        """Read once, so that what access is asked for is what is done; what is wrong with it is told who may."""
        if not self._is_whole(path):
            return {}, None
        try:
            return (to_update(found, said) if found else self._to_create(path, said)), None
        except BrokerError as error:
            return {}, error

    async def _may(
        self, request: Request, principal: Principal, action: Action, path: Sequence[str], wanted: Mapping[str, Any]
    ) -> None:
        """What no object can be at, administrators alone hear more of."""
        whole = self._is_whole(path)
        needs = self._keeper.needs(action, tuple(path), wanted) if whole else [CONFIGURE]
        await self._asking.check(request, principal, needs)
        if not whole:
            line = "/".join(self._tree.line(self._category))
            raise NotFound(f"{self._kind.category} is at {line}, or at the path of its parent")

    def _is_whole(self, path: Sequence[str]) -> bool:
        return len(path) == len(self._tree.line(self._category)) and ANY not in path

    def _found(self, path: Sequence[str]) -> ConfiguredObject | None:
        if not self._is_whole(path):
            return None
        try:
            return self._tree.one(self._category, path)
        except NotFound:
            return None

    # -------------------------------------------------------------- what is done

    def _to_create(self, path: Sequence[str], said: Mapping[str, Any]) -> dict[str, Any]:
        if not path or not path[-1]:
            raise IllegalConfiguration(f"attribute 'name' of {self._kind.category}: it is mandatory")
        name, parent = path[-1], self._parent(path)
        if said.get("name", name) != name:
            raise IllegalConfiguration(f"attribute 'name': the path says '{name}'")
        if self._keeper.children(parent).get(name):
            raise AlreadyExists(f"there is a {self._kind.category} '{name}' already")
        return to_create(self._kind, {**said, "name": name}, parent)

    async def _create(self, principal: Principal, path: Sequence[str], wanted: Mapping[str, Any]) -> Response:
        await self._keeper.create(self._parent(path), path[-1], wanted)
        made = self._tree.one(self._category, path)
        kept = {key: wanted[key] for key in KEPT_HERE if key in wanted}
        await self._tree.house.keep(made, _bounded(kept), principal.name, created=True)
        location = f"/api/latest/{self._category}/{path_of(path)}"
        return self._told(self._tree.one(self._category, path), HTTPStatus.CREATED, {"Location": location})

    def _parent(self, path: Sequence[str]) -> ConfiguredObject:
        """A virtual host comes with its node: there is none before."""
        if self._category == "virtualhost":
            if path[0] != path[1]:
                raise IllegalConfiguration("attribute 'name': a virtual host is called as its node is")
            node = self._tree.categories["virtualhostnode"].kind
            there = self._tree.categories["virtualhostnode"].children(self._tree.broker)
            return there.get(path[0]) or node(self._tree.broker, {"name": path[0]})
        line = self._tree.line(self._category)
        return self._tree.one(line[-2], path[:-1]) if len(line) > 1 else self._tree.broker

    async def _update(self, found: ConfiguredObject, wanted: dict[str, Any], principal: Principal) -> Response:
        if wanted.get("desiredState") == _DELETED:
            await self._keeper.delete(found)
            await self._tree.house.forget(found)
            return Response(status_code=HTTPStatus.OK)
        theirs = {key: value for key, value in wanted.items() if key not in KEPT_HERE}
        if theirs:
            await self._keeper.update(found, theirs)
        if wanted:
            kept = {key: value for key, value in wanted.items() if key in KEPT_HERE}
            await self._tree.house.keep(found, _bounded(kept), principal.name)
        return self._told(self._again(found), HTTPStatus.OK)

    def _again(self, found: ConfiguredObject) -> ConfiguredObject:
        return self._tree.one(self._category, found.path)

    def _told(self, found: ConfiguredObject, status: HTTPStatus, headers: dict[str, str] | None = None) -> Response:
        return JSONResponse(rendered(found, Options(), lambda _: (), self._tree.measure), status, headers)

    async def delete(self, request: Request, principal: Principal) -> Response:
        """At a whole path, or at one of a parent with filters. Raises NotFound where nothing is there."""
        names, line = self._asking.names(request), self._tree.line(self._category)
        await self._tree.ready(counted=self._keeper.counted)
        if len(names) == len(line) and ANY not in names:
            await self._may(request, principal, Action.DELETE, names, {})
            found = [self._tree.one(self._category, names)]
        elif not request.query_params:
            await self._asking.check(request, principal, [CONFIGURE])
            raise IllegalConfiguration("a whole path, or filters, say what to delete")
        else:
            await self._asking.check(request, principal, [CONFIGURE])
            found = self._reading.select(request, names)
            for each in found:
                await self._may(request, principal, Action.DELETE, each.path, {})
        if not found:
            raise NotFound(f"no {self._kind.category} to which that applies")
        for each in found:
            await self._keeper.delete(each)
            await self._tree.house.forget(each)
        return Response(status_code=HTTPStatus.OK)

    # -------------------------------------------------------------- operations

    async def _invoke(
        self, request: Request, principal: Principal, names: Sequence[str], said: Mapping[str, Any], fault: str
    ) -> Response:
        path, name = tuple(names[:-1]), names[-1]
        if name not in self._kind.operations:
            await self._asking.check(request, principal, [CONFIGURE])
            raise NotFound(f"{self._kind.category} has no operation '{name}'")
        told, refusal = self._arguments(path, name, said)
        await self._asking.check(request, principal, self._keeper.needs_to_invoke(name, path, told))
        if fault:
            raise HTTPException(HTTPStatus.BAD_REQUEST, fault)
        if refusal:
            raise refusal
        found = self._tree.one(self._category, path)
        if name in _OF_ALL:
            return JSONResponse(await self._of_all(found, name, told, principal))
        return JSONResponse(await self._keeper.invoke(found, name, told))

    def _arguments(
        self, path: Sequence[str], name: str, said: Mapping[str, Any]
    ) -> tuple[dict[str, Any], BrokerError | None]:
        """As `_wanted`."""
        try:
            return arguments_for(self._tree.one(self._category, path), name, said), None
        except BrokerError as error:
            return {}, error

    async def _of_all(self, found: ConfiguredObject, name: str, told: Mapping[str, Any], principal: Principal) -> Any:  # noqa: ANN401 - each its own
        if name == "getStatistics":
            wanted = told.get("statistics") or list(found.statistics)
            return {key: value for key, value in self._keeper.measure(found).items() if key in wanted}
        if not self._keeper.changes:
            raise NotOffered(f"no {found.category} is changed here")
        context = dict(found.value("context"))
        former = context.pop(told["name"], None)
        if name == "setContextVariable":
            context[told["name"]] = told["value"]
        await self._tree.house.keep(found, _bounded({"context": context}), principal.name)
        return former


def _action(found: ConfiguredObject | None, wanted: Mapping[str, Any]) -> Action:
    if found is None:
        return Action.CREATE
    return Action.DELETE if wanted.get("desiredState") == _DELETED else Action.UPDATE


async def _body(request: Request) -> tuple[dict[str, Any], str]:
    """What JSON says, and what is wrong with it."""
    data = await body(request)
    try:
        said = json.loads(data, parse_constant=_no_number) if data else {}
        json.dumps(said, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        return {}, f"the body is no JSON: {error}"
    return (said, "") if isinstance(said, dict) else ({}, "the body is no map")


def _no_number(text: str) -> None:
    """Python reads more than JSON has."""
    raise ValueError(text)


def _bounded(kept: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(kept)) > MOST:
        raise IllegalConfiguration(f"description and context have more than {MOST} characters together")
    return kept
