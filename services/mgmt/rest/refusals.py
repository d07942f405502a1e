"""What is refused in front of all routes, in the form of the API that the path belongs to."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from services.common.errors import AccessRefused, SyntaxFault
from services.mgmt.rest import failures
from services.mgmt.rest.model import answers as of_model
from services.mgmt.rest.model.paths import VERSIONS
from services.mgmt.rest.rabbitmq import answers as of_rabbitmq
from services.mgmt.rest.rabbitmq.paths import is_ours

if TYPE_CHECKING:
    from fastapi.responses import JSONResponse

_OF_RABBITMQ = {HTTPStatus.BAD_REQUEST: "bad_request", HTTPStatus.FORBIDDEN: "forbidden"}
_OWN = {HTTPStatus.BAD_REQUEST: SyntaxFault.__name__, HTTPStatus.FORBIDDEN: AccessRefused.__name__}


def refusal(path: bytes, status: HTTPStatus, reason: str) -> JSONResponse:
    """An application too: ASGI."""
    if is_ours(path.decode("latin-1")):
        return of_rabbitmq.answer(status, _OF_RABBITMQ[status], reason)
    if path.startswith(tuple(f"/api/{version}/".encode() for version in VERSIONS)):
        return of_model.answer(status, reason)
    return failures.answer(status, _OWN[status], reason)
