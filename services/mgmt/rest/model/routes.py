"""The routes: two paths for each category, and what Broker-J has below /service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Request, Response
from starlette.routing import BaseRoute

from services.common.authentication.principal import Principal
from services.common.clock import epoch_ms
from services.mgmt.access.operations import ASK_MGMT, OBSERVE
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.rendering import Options
from services.mgmt.rest.basic import Basic, Doors
from services.mgmt.rest.late import Late, below, part_of_path
from services.mgmt.rest.model import preferring, querying
from services.mgmt.rest.model.answers import Route, documented
from services.mgmt.rest.model.asking import Asking
from services.mgmt.rest.model.metadata import metadata, structure
from services.mgmt.rest.model.reading import Page, Reading, Shape, options
from services.mgmt.rest.model.schemas import body_of, operations_of, placed, response_of
from services.mgmt.rest.model.time_zones import time_zones
from services.mgmt.rest.model.writing import Writing
from services.mgmt.rest.pieces import in_turns, piecewise
from services.mgmt.tree.tree import BROKER, Tree

_PREFIX = "/{version:model_version}"
_BOTH = (401, 403, 404, 422, 503)


def model_routes(doors: Doors, tree: Tree, prefix: str) -> Iterator[Late]:
    """Below `prefix`: of no single category, and two paths for each of them; and what is below /service."""
    asking = Asking(tree, doors)
    yield Late(part_of_path(*querying.WORDS), lambda: querying.query_routes(doors, tree, prefix).routes)
    yield Late(part_of_path(*preferring.WORDS), lambda: preferring.preference_routes(doors, asking, prefix).routes)
    yield from _category_routes(doors, asking, tree, prefix)
    yield Late(below("/service"), lambda: _service_routes(doors, tree).routes)


def _category_routes(doors: Doors, asking: Asking, tree: Tree, prefix: str) -> Iterator[Late]:
    for name in tree.categories:
        yield Late(part_of_path(name), partial(_of_category, doors, asking, tree, name, prefix))


def _of_category(doors: Doors, asking: Asking, tree: Tree, name: str, prefix: str) -> Sequence[BaseRoute]:
    each = tree.categories[name]
    router = APIRouter(prefix=f"{prefix}{_PREFIX}/{name}", tags=[f"model: {each.kind.category}"], route_class=Route)
    names = f"{'/'.join(tree.line(name))}, or less, or an operation more; a name that holds a slash is encoded twice"
    for path in ("", "/{path:names}"):
        at = _At(router, path, placed(path, names))
        _reads(at, reading := Reading(asking, name), doors.to(reading.needs), each.kind)
        if each.changes:
            _writes(at, Writing(asking, name), doors.to(ASK_MGMT), each.kind, deletes=name != BROKER)
    return router.routes


class _At(NamedTuple):
    """A path of a category."""

    router: APIRouter
    path: str
    described: dict[str, Any]

    def add(self, method: str, endpoint: Callable[..., Any], summary: str, **more: Any) -> None:  # noqa: ANN401 - as FastAPI's
        extra = {**self.described, **more.pop("extra", {})}
        self.router.add_api_route(
            self.path, endpoint, methods=[method], summary=summary, response_model=None, openapi_extra=extra, **more
        )


def _reads(at: _At, reading: Reading, door: Basic, kind: type[ConfiguredObject]) -> None:
    responses: dict[int | str, dict[str, Any]] = {200: response_of(kind), **documented(400, 405, *_BOTH)}

    who_asks = Depends(door)

    async def get(
        request: Request,
        shown: Annotated[Options, Depends(options)],
        page: Annotated[Page, Depends()],
        shape: Annotated[Shape, Depends()],
        who: Principal = who_asks,
    ) -> Response:
        """Other parameters are filters: attribute=value, repeatable. A name may be *."""
        return await reading.get(request, who, shown, page, shape)

    summary, description = "An object, a list, or what an operation answers", _described(get, kind, modifying=False)
    at.add("GET", get, summary, responses=responses, description=description)


def _described(endpoint: Callable[..., Any], kind: type[ConfiguredObject], *, modifying: bool) -> str:
    return f"{endpoint.__doc__}\n\nOperations:\n\n{operations_of(kind, modifying=modifying)}"


def _writes(
    at: _At, writing: Writing, door: Basic, kind: Any, *, deletes: bool  # noqa: ANN401 - of any category
) -> None:  # fmt: skip
    responses: dict[int | str, dict[str, Any]] = {201: response_of(kind), **documented(400, 405, 409, *_BOTH)}

    who_asks = Depends(door)

    async def put(request: Request, who: Principal = who_asks) -> Response:
        """At a whole path creates, or updates; at the path of the parent creates what the body names."""
        return await writing.put(request, who)

    async def post(request: Request, who: Principal = who_asks) -> Response:
        """At a whole path updates; at that of the parent creates; with a name more carries out an operation."""
        return await writing.post(request, who)

    async def delete(request: Request, who: Principal = who_asks) -> Response:
        """At a whole path, or at one that ends early, with filters: attribute=value."""
        return await writing.delete(request, who)

    more: dict[str, Any] = {"responses": responses, "extra": body_of(kind)}
    at.add("PUT", put, "Create or update", **more)
    at.add("POST", post, "Create, update, or carry out", description=_described(post, kind, modifying=True), **more)
    if deletes:
        at.add("DELETE", delete, "Delete", responses=documented(400, 405, 409, *_BOTH), response_class=Response)


def _service_routes(doors: Doors, tree: Tree) -> APIRouter:
    router = APIRouter(prefix="/service", tags=["model"], route_class=Route)
    asking, who_asks = Asking(tree, doors), Depends(doors.to(OBSERVE))

    @router.get("/metadata", summary="Categories with their attributes and operations", responses=documented(401, 403))
    async def get_metadata(_who: Principal = who_asks) -> dict[str, Any]:
        """Category → type → attributes, statistics and operations."""
        return metadata(tree)

    @router.get(
        "/structure",
        response_model=dict[str, Any],
        summary="The names of all objects",
        responses=documented(401, 403, 503),
    )
    async def get_structure(request: Request, who: Principal = who_asks) -> Response:
        """The tree: ids and names."""
        await tree.ready(())
        may = [name for name, each in tree.categories.items() if await asking.may(request, who, each.sees)]
        return piecewise(await in_turns(structure(tree, tree.broker, may)), "application/json", {})

    @router.get("/timezones", summary="Time zones of the machine that manages", responses=documented(401, 403))
    async def get_time_zones(_who: Principal = who_asks) -> list[dict[str, Any]]:
        """Each with its offset in minutes, as it is now."""
        return await asyncio.to_thread(time_zones, datetime.fromtimestamp(epoch_ms() / 1000, UTC))

    return router
