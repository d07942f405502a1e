"""What answers over HTTP before the application is there."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, cast

import pytest

from services.mgmt.front import Application, Front
from services.mgmt.stack_health import Report, StackHealth


class _Health:
    """Says always the same."""

    def __init__(self, report: Report) -> None:
        self._report = report

    async def report(self) -> Report:
        return self._report


async def _told(front: Front, path: str, method: str = "GET") -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        said.append(dict(message))

    await front({"type": "http", "path": path, "method": method}, None, send)
    return said


def _front(make: Any = None, **services: str) -> Front:
    return Front(cast("StackHealth", _Health(Report(services))), make)


async def _echo(scope: Any, _receive: Any, send: Any) -> None:
    await send({"path": scope["path"], "method": scope["method"]})


@pytest.mark.parametrize(("state", "status", "word"), [("ok", 200, "ok"), ("not serving", 503, "unavailable")])
async def test_health(state: str, status: int, word: str) -> None:
    """It is told as JSON with a status, to those who ask for its head too."""
    for method in ("GET", "HEAD"):
        head, body = await _told(_front(store=state), "/healthz", method)
        assert (head["status"], json.loads(body["body"])["status"]) == (status, word)
        assert dict(head["headers"])[b"content-length"] == str(len(body["body"])).encode()


async def test_the_application_is_made_once() -> None:
    """Not before the first request for it; health is answered meanwhile, and all other requests wait for that one."""
    begun, go, made = threading.Event(), threading.Event(), []

    def make() -> Application:
        made.append(threading.current_thread())
        begun.set()
        assert go.wait(30)
        return _echo

    front = _front(make, store="ok")
    await _told(front, "/healthz")
    assert made == []
    asking = [asyncio.create_task(_told(front, path)) for path in ("/api/a", "/api/b", "/api/c")]
    assert await asyncio.to_thread(begun.wait, 30)
    asking[0].cancel()
    assert len(await _told(front, "/healthz")) == 2
    go.set()
    assert [(await each)[0]["path"] for each in asking[1:]] == ["/api/b", "/api/c"]
    assert (await _told(front, "/healthz", "POST"))[0]["method"] == "POST"
    assert len(made) == 1
    assert made[0] is not threading.main_thread()
