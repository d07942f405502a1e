"""Routes that are made when somebody asks for one of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.datastructures import Headers
from starlette.routing import BaseRoute

from services.mgmt.rest.late import Late, make_all, part_of_path


class House:
    """Routes of queues, and how often they were made."""

    def __init__(self) -> None:
        self.made = 0
        self.app = FastAPI()
        self.app.router.routes.append(Late(part_of_path("queue"), self._make))

    async def ask(self, path: str, method: str = "GET") -> tuple[int, Headers, Any]:
        """Status, headers and body of the answer."""
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(event: Any) -> None:
            sent.append(event)

        scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b"", "root_path": ""}
        await self.app(scope, receive, send)
        body = b"".join(each["body"] for each in sent[1:])
        return sent[0]["status"], Headers(raw=sent[0]["headers"]), json.loads(body)

    def _make(self) -> Sequence[BaseRoute]:
        self.made += 1
        router = APIRouter(prefix="/api/{version}/queue")
        router.get("/{name}")(lambda version, name: f"{version} {name}")
        router.delete("/{name}")(lambda version, name: None)
        return router.routes


@pytest.fixture
def house() -> House:
    return House()


async def test_made_once(house: House) -> None:
    """The first request makes them, and none after it."""
    assert house.made == 0
    assert [(await house.ask(f"/api/latest/queue/{name}"))[2] for name in "ab"] == ["latest a", "latest b"]
    assert house.made == 1


@pytest.mark.parametrize("path", ["/api/latest/queues/a", "/api/latest/exchange/a", "/queued", "/"])
async def test_others(house: House, path: str) -> None:
    """Who asks for another path makes none."""
    status, _, _ = await house.ask(path)
    assert (status, house.made) == (404, 0)


async def test_method(house: House) -> None:
    """Another method than a path has is not allowed there, and which there are is said."""
    status, headers, _ = await house.ask("/api/latest/queue/a", "POST")
    assert (status, headers["allow"]) == (405, "GET")


async def test_description(house: House) -> None:
    """Who wants all has all made: they stand in the description."""
    make_all(house.app)
    assert set(house.app.openapi()["paths"]["/api/{version}/queue/{name}"]) == {"get", "delete"}
    assert (await house.ask("/api/latest/queue/a"))[2] == "latest a"
    assert house.made == 1
