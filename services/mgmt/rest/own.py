"""Routes that are Hopline's own: a body is as long as it may be, and JSON, before anything is read out of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers

from services.common.errors import SyntaxFault
from services.mgmt.rabbitmq.said import read_json
from services.mgmt.rest.basic import Basic
from services.mgmt.rest.bodies import body
from services.mgmt.rest.failures import documented

_JSON: Final = (b"content-type", b"application/json")


class Own(APIRoute):
    """For `route_class`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI asks for."""
        inner, door = super().get_route_handler(), self._door()

        async def handle(request: Request) -> Response:
            own = _Own(request.scope, request.receive)
            await door.take(own)  # FastAPI reads the body before it checks the user
            return await inner(own)

        return handle

    def _door(self) -> Basic:
        """Of its router: whatever a route depends on by itself comes after it."""
        door = self.dependencies[0].dependency
        assert isinstance(door, Basic)
        return door


def own_router(door: Basic, tag: str, prefix: str = "") -> APIRouter:
    """Below /api: one comes to its routes by that door."""
    responses = documented(400, 401, 403, 422)
    return APIRouter(
        prefix=f"/api{prefix}", tags=[tag], route_class=Own, dependencies=[Depends(door)], responses=responses
    )


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
