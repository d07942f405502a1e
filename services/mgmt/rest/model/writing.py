"""PUT, POST and DELETE: what is at a path is created, updated, deleted, or carries out an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.responses import JSONResponse

from services.common.access.action import Action
from services.common.authentication.principal import Principal
from services.common.errors import NotFound
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.rendering import Options, rendered
from services.mgmt.rest.bodies import body, json_in
from services.mgmt.rest.model.asking import Asking
from services.mgmt.rest.model.invoked import answered
from services.mgmt.rest.model.paths import path_of
from services.mgmt.rest.model.reading import Reading
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.changes import Changes, action_of
from services.mgmt.tree.tree import ANY


class Writing:
    """Changes of one category."""

    def __init__(self, asking: Asking, category: str) -> None:
        self._asking = asking
        self._tree = asking.tree
        self._category = category
        self._keeper = self._tree.categories[category]
        self._kind = self._keeper.kind
        self._reading = Reading(asking, category)
        self._changes = Changes(asking.tree, category)

    async def put(self, request: Request, principal: Principal) -> Response:
        """At a whole path: creates, or updates; at the path of its parent: creates what the body names."""
        return await self._change(request, principal, may_create=True)

    async def post(self, request: Request, principal: Principal) -> Response:
        """At a whole path: updates; at the path of its parent: creates; one name more is an operation."""
        return await self._change(request, principal, may_create=False)

    async def _change(self, request: Request, principal: Principal, *, may_create: bool) -> Response:
        names, line = self._asking.names(request), self._tree.line(self._category)
        caller = self._asking.caller(request, principal)
        said, fault = await _body(request)
        await self._tree.ready(self._keeper.fresh)
        if len(names) == len(line) + 1 and not may_create:
            return await self._invoke(caller, names, said, fault)
        by_parent = bool(line) and len(names) == len(line) - 1
        path = (*names, str(said.get("name", ""))) if by_parent else names
        found = None if by_parent else self._changes.found(path)
        wanted, refusal = self._changes.wanted(found, path, said)
        await self._changes.may(caller, action_of(found, wanted), path, wanted)
        if fault:
            raise fault
        if found is None and not by_parent and not may_create:
            raise NotFound(f"no {self._kind.category} '{path[-1]}'")
        if refusal:
            raise refusal
        return await (self._update(found, wanted, caller) if found else self._create(caller, path, wanted))

    # -------------------------------------------------------------- what is done

    async def _create(self, caller: Caller, path: Sequence[str], wanted: Mapping[str, Any]) -> Response:
        made = await self._changes.create(caller, path, wanted)
        location = f"/api/latest/{self._category}/{path_of(path)}"
        return self._told(made, HTTPStatus.CREATED, {"Location": location})

    async def _update(self, found: ConfiguredObject, wanted: dict[str, Any], caller: Caller) -> Response:
        updated = await self._changes.update(caller, found, wanted)
        return self._told(updated, HTTPStatus.OK) if updated else Response(status_code=HTTPStatus.OK)

    def _told(self, found: ConfiguredObject, status: HTTPStatus, headers: dict[str, str] | None = None) -> Response:
        return JSONResponse(rendered(found, Options(), self._tree.measure), status, headers)

    async def delete(self, request: Request, principal: Principal) -> Response:
        """At a whole path, or at one of a parent with filters. Raises NotFound where nothing is there."""
        names, line = self._asking.names(request), self._tree.line(self._category)
        caller = self._asking.caller(request, principal)
        await self._tree.ready(self._keeper.fresh)
        if len(names) == len(line) and ANY not in names:
            await self._changes.may(caller, Action.DELETE, names, {})
            found = [self._tree.one(self._category, names)]
        elif not request.query_params:
            await caller.check([CONFIGURE])
            raise IllegalConfiguration("a whole path, or filters, say what to delete")
        else:
            await caller.check([CONFIGURE])
            found = await self._reading.select(request, names)
            for each in found:
                await self._changes.may(caller, Action.DELETE, each.path, {})
        if not found:
            raise NotFound(f"no {self._kind.category} to which that applies")
        for each in found:
            await self._changes.delete(each)
        return Response(status_code=HTTPStatus.OK)

    # -------------------------------------------------------------- operations

    async def _invoke(
        self, caller: Caller, names: Sequence[str], said: Mapping[str, Any], fault: HTTPException | None
    ) -> Response:
        path, name = names[:-1], names[-1]
        if name not in self._kind.operations:
            await caller.check([CONFIGURE])
            raise NotFound(f"{self._kind.category} has no operation '{name}'")
        return await answered(await self._changes.invoke(caller, path, name, said, fault))


async def _body(request: Request) -> tuple[dict[str, Any], HTTPException | None]:
    """What JSON says, and what is wrong with it."""
    data = await body(request)
    try:
        said = json_in(data) if data else {}
    except HTTPException as error:
        return {}, error
    return (said, None) if isinstance(said, dict) else ({}, HTTPException(HTTPStatus.BAD_REQUEST, "the body is no map"))
