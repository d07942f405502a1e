"""Routes that are Hopline's own: a body is as long as it may be, and JSON, before anything is read out of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import BaseRoute

from services.common.errors import SyntaxFault
from services.mgmt.rabbitmq.said import read_json
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.bodies import body

_JSON: Final = (b"content-type", b"application/json")


class Own(APIRoute):
    """For `route_class`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI asks for."""
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            own = _Own(request.scope, request.receive)
            await _door_of(own).take(own)  # FastAPI reads the body before it checks the user
            return await inner(own)

        return handle


def own_doors(app: FastAPI, router: APIRouter, door: Basic) -> None:
    """By which door one comes to the routes of a router, all of them Own."""
    app.state.doors = {**getattr(app.state, "doors", {}), **dict.fromkeys(map(_endpoint, router.routes), door)}


def _endpoint(route: BaseRoute) -> Callable[..., Any]:
    assert isinstance(route, Own)
    return route.endpoint


def _door_of(request: Request) -> Basic:
    door: Basic = request.app.state.doors[request.scope["endpoint"]]
    return door


class _Own(Request):
    """FastAPI's own reads bodies of any length, and what only Python takes for JSON or for text."""

    @property
    def headers(self) -> Headers:
        """What is sent is JSON, whatever they call it: curl calls all a form."""
        if _JSON not in self.scope["headers"]:
            others = [each for each in self.scope["headers"] if each[0] != _JSON[0]]
            return Headers(raw=[*others, _JSON])
        return super().headers

    async def body(self) -> bytes:
        """Raises HTTPException (413, 408)."""
        return await body(self)

    async def json(self) -> Any:  # noqa: ANN401 - as Starlette's
        """Raises HTTPException (400), which says what is wrong."""
        try:
            return read_json(await self.body(), "the body is")
        except SyntaxFault as error:
            raise HTTPException(400, error.text) from None
