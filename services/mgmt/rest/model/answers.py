"""What goes wrong below /api/latest and /service: Broker-J's body, but with what is wrong in it, and its statuses."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, ClassVar, Final

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from services.common import errors as e
from services.common.errors import BrokerError, of_kind
from services.common.invalid import told
from services.mgmt.model.faults import AlreadyExists, IllegalConfiguration, IllegalTransition, NotOffered, brief
from services.mgmt.rest.answering import Answering
from services.mgmt.rest.failures import Failure
from services.mgmt.rest.mentions import mentioned

STATUSES: Final[dict[type[BrokerError], int]] = {
    e.AccessRefused: 403,
    e.NotFound: 404,
    NotOffered: 405,
    AlreadyExists: 409,
    IllegalTransition: 409,
    e.PreconditionFailed: 409,
    e.ResourceLocked: 409,
    IllegalConfiguration: 422,
    e.SyntaxFault: 422,
    e.NotAllowed: 422,
    e.CommandInvalid: 422,
    e.Unavailable: 503,
    e.ResourceError: 503,
}


class ModelFailure(BaseModel):
    """The body of every answer that is an error."""

    errorMessage: str = Field(description="what is wrong")  # noqa: N815 - as Broker-J has it


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route says in its OpenAPI description about errors: of another version there is no path at all."""
    both = (ModelFailure, Failure)
    return {status: mentioned(*both if status == HTTPStatus.NOT_FOUND else (ModelFailure,)) for status in statuses}


def answer(status: int, text: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """A failure."""
    return JSONResponse(ModelFailure(errorMessage=brief(text)).model_dump(), status, headers)


def _of_broker(error: BrokerError) -> JSONResponse:
    status = of_kind(STATUSES, error, 500)
    allow = error.allow if isinstance(error, NotOffered) else ""
    return answer(status, error.text, {"Allow": allow} if allow else {})


class Route(Answering):
    """See Answering."""

    answers: ClassVar = {
        BrokerError: _of_broker,
        HTTPException: lambda error: answer(error.status_code, str(error.detail), dict(error.headers or {})),
        RequestValidationError: lambda error: answer(400, told(error.errors())),
    }
