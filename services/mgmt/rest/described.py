"""What the routes do not say of themselves, in the document that describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from services.mgmt.rest.failures import Failure
from services.mgmt.rest.late import make_all
from services.mgmt.rest.mentions import written_down
from services.mgmt.rest.model.answers import ModelFailure

_PATH: Final = "/openapi.json"
_FRAMEWORKS: Final = ("HTTPValidationError", "ValidationError")
"""Bodies of errors that FastAPI would answer with, where no route here does."""


def describe(app: FastAPI) -> None:
    """From now on its document says what is answered, and nothing else; an app that has no path for it yet gets one.

    It is a megabyte, and open to every client: it is written once, for all of them.
    """
    app.openapi = _corrected(app)  # type: ignore[method-assign]  # as FastAPI says it is done

    @cache
    def written() -> bytes:
        return bytes(JSONResponse(app.openapi()).body)

    async def answer(_request: Request) -> Response:
        return Response(written(), media_type=JSONResponse.media_type)

    app.add_route(_PATH, answer, include_in_schema=False)


def _corrected(app: FastAPI) -> Callable[[], dict[str, Any]]:
    describe = app.openapi

    def told() -> dict[str, Any]:
        make_all(app)
        document = describe()
        schemas = document["components"]["schemas"]
        for operation in _operations(document):
            _correct(operation)
            schemas |= _parts(operation)
        for name in _FRAMEWORKS:
            schemas.pop(name, None)
        schemas |= written_down(Failure, ModelFailure)
        return document

    return told


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in document["paths"].values():
        yield from each.values()


def _correct(operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    if _FRAMEWORKS[0] in str(responses.get("422")):
        del responses["422"]
    if "requestBody" in operation:
        responses["413"] = {**responses["400"], "description": "The body is too long"}
        responses["408"] = {**responses["400"], "description": "The body takes too long"}


def _parts(operation: dict[str, Any]) -> dict[str, Any]:
    """What the schema of a body brings along, which it refers to as the document's."""
    content = operation.get("requestBody", {}).get("content", {})
    return {name: part for each in content.values() for name, part in each.get("schema", {}).pop("$defs", {}).items()}
