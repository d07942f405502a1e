"""What goes wrong below RabbitMQ's paths: its body, {"error": …, "reason": …}, and its statuses.

Who may not is answered 401, as RabbitMQ does: its tools say "access refused" then, and break at 403.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from services.common import errors as e
from services.common.errors import BrokerError
from services.mgmt.rabbitmq.said import read_json
from services.mgmt.rest.bodies import MOST, body
from services.mgmt.rest.failures import Failure

_M = TypeVar("_M", bound=BaseModel)

_KINDS: Final[Mapping[type[BrokerError], tuple[int, str]]] = {
    e.AccessRefused: (401, "not_authorised"),
    e.NotFound: (404, "not_found"),
    e.Unavailable: (503, "service_unavailable"),
    e.InternalError: (500, "internal_server_error"),
}
_BAD: Final = (400, "bad_request")
"""Everything else: RabbitMQ tells what a declaration cannot be in the same way."""
_HTTP: Final[Mapping[int, str]] = {
    401: "not_authorised",
    404: "not_found",
    405: "method_not_allowed",
    413: "payload_too_large",
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route says in its OpenAPI description about errors."""
    return {status: {"model": Failure} for status in (400, 401, 503, *statuses)}


def body_of(kind: type[BaseModel]) -> dict[str, Any]:
    """What a route says in its OpenAPI description about its body."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}}


class Route(APIRoute):
    """One that answers with that, whoever raises it: who is asked for, or a handler."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI asks for."""
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except BrokerError as error:
                return answer(*_KINDS.get(type(error), _BAD), error.text)
            except HTTPException as error:
                kind = _HTTP.get(error.status_code, _BAD[1])
                return answer(error.status_code, kind, str(error.detail), error.headers)
            except (RequestValidationError, ValidationError) as error:
                faults = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
                return answer(*_BAD, "; ".join(faults))

        return handle


def answer(status: int, error: str, reason: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A failure."""
    return JSONResponse(Failure(error=error, reason=reason).model_dump(), status, headers)


async def read(request: Request, kind: type[_M], most: int = MOST) -> _M:
    """The body, whatever is said of its type. Raises SyntaxFault, and ValidationError that names the field."""
    return kind.model_validate(read_json(await body(request, most) or b"{}", "the body is"))


def put(*, created: bool) -> Response:
    """What a PUT is answered with."""
    return Response(status_code=201 if created else 204)
