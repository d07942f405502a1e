"""Standard error as a logger, over Broker-J's REST: told, and changed by rules only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from services.common.config import Settings
from services.mgmt.service import Service
from tests.support.fake_store import FakeStore
from tests.support.rest import Get, asking

LEVELS: dict[Literal["debug", "info", "warning", "error"], tuple[str, str]] = {
    "debug": ("DEBUG", "WARN"),
    "info": ("INFO", "WARN"),
    "warning": ("WARN", "WARN"),
    "error": ("ERROR", "ERROR"),
}


@pytest.fixture(params=LEVELS)
async def levelled(request: Any, tmp_path: Path, store: FakeStore) -> AsyncIterator[tuple[str, Get]]:
    places = {"data": tmp_path, "http_host": "127.0.0.1", "http_port": 0, "partitions": 4}
    service = Service(Settings(**places, log_level=request.param, log_format="json"))
    await service.start()
    yield request.param, asking(service.http_port)
    await service.stop()


async def test_what_is_logged(levelled: tuple[Literal["debug", "info", "warning", "error"], Get]) -> None:
    """Is told as each process logs: its own lines from the level of the settings on, of libraries warnings at most."""
    level, get = levelled
    [logger] = (await get("/api/latest/brokerlogger"))[1]
    assert (logger["name"], logger["type"], logger["layout"]) == ("stderr", "Console", "json")
    rules = (await get("/api/latest/brokerloginclusionrule/stderr?orderBy=name"))[1]
    told = {each["loggerName"]: each["level"] for each in rules}
    assert told == dict(zip(("services.*", "ROOT"), LEVELS[level], strict=True))


_PROGRAM = """
import logging, sys
from services.common.log import configure, structlog
configure("x", "json", sys.argv[1])
for log in (structlog.get_logger(), logging.getLogger("library")):
    for level in ("debug", "info", "warning", "error"):
        getattr(log, level)(f"{type(log).__module__.partition('.')[0]} {level}")
"""


@pytest.mark.parametrize("level", LEVELS)
def test_what_processes_take(level: Literal["debug", "info", "warning", "error"]) -> None:
    """Is what is told."""
    ran = subprocess.run([sys.executable, "-c", _PROGRAM, level], capture_output=True, text=True, check=True)
    for whose, least in zip(("structlog", "logging"), LEVELS[level], strict=True):
        lines = {each: f"{whose} {each}" in ran.stderr for each in LEVELS}
        assert next(LEVELS[each][0] for each, there in lines.items() if there) == least


async def test_rules_change(get: Get) -> None:
    """A rule is made, changed and deleted; those of the settings take another level, and what they say again."""
    path = "/api/latest/brokerloginclusionrule/stderr"

    async def ask(method: str, name: str, body: object = None) -> tuple[int, Any]:
        status, told, _ = await get(f"{path}/{name}", "guest:guest", method, body)
        return status, told

    assert (await ask("PUT", "more", {"loggerName": "services.queue.*", "level": "DEBUG"}))[0] == 201
    assert (await ask("PUT", "more", {"level": "WARN"}))[1]["level"] == "WARN"
    assert (await ask("PUT", "hopline", {"level": "ERROR"}))[1]["level"] == "ERROR"
    for body in ({"level": "LOUD"}, {"loggerName": "services.router.*"}, {"username": "a.*"}):
        assert (await ask("PUT", "more", body))[0] == 422
    assert (await ask("PUT", "other", {"type": "UserOrConnectionSpecific"}))[0] == 422
    assert [(await ask("DELETE", name))[0] for name in ("more", "hopline", "more", "hopline")] == [200, 200, 404, 403]
    assert (await ask("GET", "hopline"))[1]["level"] == "INFO"
