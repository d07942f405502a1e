"""What RabbitMQ has and Hopline does not: asked for, there is none; nothing of it can be made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from fastapi import APIRouter

from services.common.errors import NotFound, SyntaxFault
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.rabbitmq.answers import Route, documented
from services.mgmt.rest.rabbitmq.caller import who_asks


class _Kind(NamedTuple):
    path: str
    one: str
    """What is below the path, of one of them."""
    what: str


_KINDS: Final = (
    _Kind("policies", "/{vhost:encoded}/{name:encoded}", "policies"),
    _Kind("operator-policies", "/{vhost:encoded}/{name:encoded}", "operator policies"),
    _Kind("parameters", "/{component:encoded}/{vhost:encoded}/{name:encoded}", "parameters: no federation, no shovels"),
    _Kind("global-parameters", "/{name:encoded}", "global parameters"),
    _Kind("vhost-limits", "/{vhost:encoded}/{name:encoded}", "limits of virtual hosts"),
)


def absent_routes(doors: Doors) -> Iterator[APIRouter]:
    """An empty list, 404 for one, 400 for who wants to make one."""
    for kind in _KINDS:
        router = APIRouter(
            prefix=f"/{kind.path}",
            tags=["RabbitMQ: what is not here"],
            route_class=Route,
            responses=documented(404),
            dependencies=[who_asks(doors)],
        )
        _reads(router, kind)
        router.add_api_route(kind.one, _refuse(kind), methods=["PUT"], summary="Not here")
        router.add_api_route(kind.one, _miss(kind), methods=["GET"], summary="Not here")
        router.add_api_route(kind.one, _miss(kind), methods=["DELETE"], summary="Not here")
        yield router


def _reads(router: APIRouter, kind: _Kind) -> None:
    """In all virtual hosts, and where there is more than a name, in what comes before it."""
    parts = kind.one.strip("/").split("/")
    for count in range(len(parts)):
        path = "".join(f"/{part}" for part in parts[:count])
        router.add_api_route(path, _none, methods=["GET"], summary=f"There are no {kind.what}")


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
