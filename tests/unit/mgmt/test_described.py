"""The OpenAPI document, where FastAPI by itself would say what is not so."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi import FastAPI

from services.mgmt.rest.described import describe
from tests.support.rest import Get

_ASKED: list[Any] = []


@pytest.fixture
async def document(get: Get) -> Any:
    """It is the same of every broker, and takes seconds of processor time: the first test asks, for all."""
    if not _ASKED:
        _ASKED.append((await get("/openapi.json", None))[1])
    return _ASKED[0]


async def test_described(document: Any) -> None:
    """Every parameter of a path is described, every error has this API's body, and what is too long is one."""
    assert "HTTPValidationError" not in str(document)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            named = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path)), path
            assert ("requestBody" in operation) == ("413" in operation["responses"]), path


async def test_what_is_mentioned_is_there(document: Any) -> None:
    """Every schema that an answer or a body refers to is in the document."""
    mentioned = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert {"Failure", "ModelFailure"} <= mentioned <= set(document["components"]["schemas"])


async def test_of_rabbitmq(document: Any) -> None:
    """A new and an existing object are two answers without a body; a missing one has one answer only."""
    paths = document["paths"]
    for path in ("/api/queues/{vhost}/{name}", "/api/users/{name}", "/api/vhosts/{name}"):
        responses = paths[path]["put"]["responses"]
        assert [responses[status].get("content") for status in ("201", "204")] == [None, None]
    assert {"200", "204"} <= set(paths["/api/definitions"]["post"]["responses"])
    never = paths["/api/parameters/{component}/{vhost}/{name}"]
    assert not {"200", "201", "204"} & {status for each in never.values() for status in each["responses"]}


async def test_of_the_tree(get: Get, document: Any) -> None:
    """Of another version of it there is no path at all, which is told as of any path that there is not."""
    schema = document["paths"]["/api/{version}/queue"]["get"]["responses"]["404"]["content"]["application/json"][
        "schema"
    ]
    assert len(schema["anyOf"]) == 2
    status, told, _ = await get("/api/v10/queue")
    assert (status, set(told)) == (404, {"error", "reason"})


async def test_written_once() -> None:
    """It is open to every client, and takes a while."""
    app, asked, said = FastAPI(openapi_url=None), list[str](), list[bytes]()
    describe(app)
    app.openapi = lambda: {"asked": asked.append("")}  # type: ignore[method-assign]

    async def send(message: Any) -> None:
        said.append(message.get("body"))

    for _ in range(3):
        scope = {"type": "http", "method": "GET", "path": "/openapi.json", "headers": [], "query_string": b""}
        await app(scope, None, send)  # type: ignore[arg-type]
    assert (len(asked), said) == (1, [None, b'{"asked":null}'] * 3)
