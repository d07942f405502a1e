"""Errors over HTTP: a status, and what went wrong as JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from services.common.errors import (
    AccessRefused,
    BrokerError,
    NotFound,
    PreconditionFailed,
    ResourceError,
    ResourceLocked,
    SyntaxFault,
    Unavailable,
    of_kind,
)
from services.common.invalid import told
from services.mgmt.model.faults import brief
from services.mgmt.rest.mentions import mentioned

_STATUS: dict[type[BrokerError], int] = {
    SyntaxFault: 400,
    AccessRefused: 403,
    NotFound: 404,
    PreconditionFailed: 409,
    ResourceLocked: 409,
    ResourceError: 503,
    Unavailable: 503,
}


class Failure(BaseModel):
    """The body of every answer that is an error."""

    error: str = Field(description="what kind of error")
    reason: str = Field(description="for humans")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route says in its OpenAPI description about errors."""
    return {status: mentioned(Failure) for status in statuses}


def status_of(error: BrokerError) -> int:
    """What it is answered with."""
    return of_kind(_STATUS, error, 500)


def answer_failures(app: FastAPI) -> None:
    """From now on any error in `app` is answered with a `Failure`."""

    @app.exception_handler(BrokerError)
    async def broker_error(_request: Request, error: BrokerError) -> JSONResponse:
        return answer(status_of(error), type(error).__name__, error.text)

    @app.exception_handler(HTTPException)
    async def http_error(_request: Request, error: HTTPException) -> JSONResponse:
        kind = SyntaxFault.__name__ if error.status_code == HTTPStatus.BAD_REQUEST else "HTTPError"
        told = answer(error.status_code, kind, str(error.detail))
        told.headers.update(error.headers or {})
        return told

    @app.exception_handler(RequestValidationError)
    async def not_valid(_request: Request, error: RequestValidationError) -> JSONResponse:
        faults = error.errors()
        is_missing = any(each["type"] == "missing" for each in faults)
        return answer(422 if is_missing else 400, SyntaxFault.__name__, told(faults))


def answer(status: int, error: str, reason: str) -> JSONResponse:
    """A failure."""
    return JSONResponse(Failure(error=error, reason=brief(reason)).model_dump(), status)
