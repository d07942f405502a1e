"""What goes wrong below RabbitMQ's paths: its body, {"error": …, "reason": …}, and its statuses.

A user without access gets 401, as from RabbitMQ: its tools say "access refused" then, and fail at 403.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError

from services.common import errors as e
from services.common.errors import BrokerError, of_kind
from services.common.invalid import told
from services.mgmt.model.faults import brief
from services.mgmt.rabbitmq.said import read_json
from services.mgmt.rest.answering import Answering
from services.mgmt.rest.bodies import body
from services.mgmt.rest.failures import Failure
from services.mgmt.rest.mentions import mentioned

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
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "payload_too_large",
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route says in its OpenAPI description about errors."""
    return {status: mentioned(Failure) for status in (400, 401, 503, *statuses)}


def body_of(kind: type[BaseModel]) -> dict[str, Any]:
    """What a route says in its OpenAPI description about its body."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}}


def answer(status: int, error: str, reason: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A failure."""
    return JSONResponse(Failure(error=error, reason=brief(reason)).model_dump(), status, headers)


def _of_http(error: HTTPException) -> JSONResponse:
    return answer(error.status_code, _HTTP.get(error.status_code, _BAD[1]), str(error.detail), error.headers)


def _not_valid(error: RequestValidationError | ValidationError) -> JSONResponse:
    return answer(*_BAD, told(error.errors()))


class Route(Answering):
    """See Answering."""

    answers: ClassVar = {
        BrokerError: lambda error: answer(*of_kind(_KINDS, error, _BAD), error.text),
        HTTPException: _of_http,
        RequestValidationError: _not_valid,
        ValidationError: _not_valid,
    }


async def read(request: Request, kind: type[_M]) -> _M:
    """The body, with any content type. Raises SyntaxFault, and ValidationError that names the field."""
    return kind.model_validate(read_json(await body(request) or b"{}", "the body is"))


PUT: Final[Mapping[str, Any]] = {
    "status_code": 201,
    "response_class": Response,  # which says in the description that there is no body
    "response_description": "It was not there",
    "responses": {204: {"description": "It was there"}},
}
"""What a route says of a PUT that is answered by `put`."""


def put(*, created: bool) -> Response:
    """What a PUT is answered with."""
    return Response(status_code=201 if created else 204)
