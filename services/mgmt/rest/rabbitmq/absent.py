"""What RabbitMQ has and Hopline does not: asked for, there is none; nothing of it can be made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from fastapi import APIRouter

from services.common.errors import NotFound, SyntaxFault
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.failures import Failure
from services.mgmt.rest.rabbitmq.answers import Route, documented
from services.mgmt.rest.rabbitmq.caller import who_asks
from services.mgmt.rest.rabbitmq.paths import API


class _Kind(NamedTuple):
    path: str
    one: str
    """What is below the path, of one of them."""
    what: str


_KINDS: Final = (
    _Kind("parameters", "/{component:encoded}/{vhost:encoded}/{name:encoded}", "parameters: no federation, no shovels"),
    _Kind("global-parameters", "/{name:encoded}", "global parameters"),
)


def absent_routes(doors: Doors) -> Iterator[APIRouter]:
    """An empty list, 404 for a single one, 400 for a request to make one."""
    for kind in _KINDS:
        router = APIRouter(
            prefix=f"{API}/{kind.path}",
            tags=["RabbitMQ: what is not here"],
            route_class=Route,
            responses=documented(404),
            dependencies=[who_asks(doors)],
        )
        _reads(router, kind)
        for method, status, endpoint in (("PUT", 400, _refuse), ("GET", 404, _miss), ("DELETE", 404, _miss)):
            router.add_api_route(kind.one, endpoint(kind), methods=[method], status_code=status, **_said(kind.one))
        yield router


def _reads(router: APIRouter, kind: _Kind) -> None:
    """In all virtual hosts, and where there is more than a name, in what comes before it."""
    parts = kind.one.strip("/").split("/")
    for count in range(len(parts)):
        path = "".join(f"/{part}" for part in parts[:count])
        router.add_api_route(path, _none, methods=["GET"], summary=f"There are no {kind.what}", openapi_extra=_of(path))


def _said(path: str) -> dict[str, Any]:
    """Of routes that are never answered otherwise."""
    never = {"response_model": Failure, "response_description": "There is none"}
    return {**never, "summary": "Not here", "openapi_extra": _of(path)}


def _of(path: str) -> dict[str, Any]:
    """Parameters of a path, which no function names."""
    names = re.findall(r"{(\w+):", path)
    required = {"in": "path", "required": True, "schema": {"type": "string"}}
    return {"parameters": [{"name": name, **required} for name in names]}


async def _none() -> list[Any]:
    """None."""
    return []


def _refuse(kind: _Kind) -> Callable[[], Any]:
    async def refuse() -> None:
        """400."""
        raise SyntaxFault(f"there are no {kind.what} here")

    return refuse


def _miss(kind: _Kind) -> Callable[[], Any]:
    async def miss() -> None:
        """404."""
        raise NotFound(f"there are no {kind.what} here")

    return miss
