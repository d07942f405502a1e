"""Loggers that are made over Broker-J's REST: where lines go, which, and what is told of them."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import urllib.request
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from services.common import log
from services.common.config import Settings
from services.common.log_rules import ROOT, LogRule
from services.mgmt.service import Service
from tests.support.rest import Get, asking

LONG = 120.0  # seconds, of which a machine that does nothing else takes one

Ask = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """As in a process of mgmt's, which writes nothing."""
    before = structlog.get_config()
    log.configure("mgmt", "json", "error")
    log.heed([LogRule(logger=ROOT, level="OFF")], [LogRule(logger=__name__, level="DEBUG")])
    yield
    structlog.configure(**before)
    structlog.contextvars.clear_contextvars()
    log.heed([LogRule(logger=ROOT, level="ALL")])


@pytest.fixture
def ask(get: Get) -> Ask:
    async def ask(method: str, path: str, body: object = None) -> tuple[int, Any]:
        status, told, _ = await get(f"/api/latest/{path}", "guest:guest", method, body)
        return status, told

    return ask


async def until(holds: Callable[[], Awaitable[Any]]) -> Any:
    """What it gives as soon as that is something."""
    async with asyncio.timeout(LONG):
        while not (found := await holds()):
            await asyncio.sleep(0.02)
    return found


async def made(ask: Ask, name: str, type_: str, **attributes: Any) -> None:
    assert (await ask("PUT", f"brokerlogger/{name}", {"type": type_, **attributes}))[0] == 201
    assert (await ask("PUT", f"brokerloginclusionrule/{name}/all", {"loggerName": f"{__name__}"}))[0] == 201


def say(event: str, level: str = "info", **about: Any) -> None:
    getattr(structlog.get_logger(), level)(event, **about)


async def entries(ask: Ask, name: str, after: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await ask("GET", f"brokerlogger/{name}/getLogEntries?lastLogId={after}"))[1]
    return found


async def test_memory(ask: Ask) -> None:
    """Keeps the last lines that its rules take, with growing ids; it counts those that are bad."""
    await made(ask, "recent", "Memory", maxRecords=3)
    for number in range(4):
        say("a thing", number=number, user="me")
    say("nobody wants it", "debug")
    say("not well", "warning")
    told = await until(lambda: _with(ask, "not well"))
    assert [each["message"] for each in told] == ["a thing number=2 user=me", "a thing number=3 user=me", "not well"]
    assert (told[-1]["level"], told[-1]["logger"], told[-1]["threadName"]) == ("WARN", __name__, "mgmt")
    assert [each["id"] for each in await entries(ask, "recent", told[1]["id"])] == [told[2]["id"]]
    statistics = (await ask("GET", "brokerlogger/recent"))[1]["statistics"]
    assert statistics == {"errorCount": 0, "warnCount": 1}
    assert (await ask("POST", "brokerlogger/recent/resetStatistics", {}))[0] == 200
    assert (await ask("GET", "brokerlogger/recent"))[1]["statistics"]["warnCount"] == 0
    assert (await ask("PUT", "brokerlogger/recent", {"maxRecords": 1}))[1]["maxRecords"] == 1
    assert await entries(ask, "recent") == [told[2]]
    assert (await ask("GET", "brokerlogger/recent/getAllFiles"))[0] == 405
    assert (await ask("DELETE", "brokerlogger/recent"))[0] == 200
    assert (await ask("GET", "brokerlogger/recent"))[0] == 404
    assert [each["name"] for each in (await ask("GET", "brokerloginclusionrule"))[1]] == ["hopline", "libraries"]


async def _with(ask: Ask, message: str) -> list[dict[str, Any]]:
    told = await entries(ask, "recent")
    return told if any(message in each["message"] for each in told) else []


async def test_rules(ask: Ask) -> None:
    """Of names, levels and users; what is changed or deleted counts from then on."""
    await made(ask, "recent", "Memory")
    path = "brokerloginclusionrule/recent"
    assert (await ask("PUT", f"{path}/all", {"level": "ERROR"}))[1]["level"] == "ERROR"
    mine = {"type": "UserOrConnectionSpecific", "username": "me|you", "level": "DEBUG"}
    status, told = await ask("PUT", f"{path}/mine", mine)
    assert (status, told["loggerName"], told["connectionName"], told["username"]) == (201, "ROOT", ".*", "me|you")
    say("of another", user="else")
    say("of mine", "debug", user="you")
    say("of nobody")
    say("bad", "error")
    told = await until(lambda: _with(ask, "bad"))
    assert [each["message"] for each in told] == ["of mine user=you", "bad"]
    for wrong in ({"username": "("}, {"level": "LOUD"}, {"loggerName": "other"}):
        assert (await ask("PUT", f"{path}/mine", wrong))[0] == 422
    assert (await ask("PUT", f"{path}/all", {"username": "me"}))[0] == 422
    assert (await ask("DELETE", f"{path}/mine"))[0] == 200
    say("of mine again", user="you")
    say("bad again", "error")
    assert "of mine again user=you" not in [each["message"] for each in await until(lambda: _with(ask, "bad again"))]


async def test_a_rule_that_is_too_slow(ask: Ask) -> None:
    """It is told, and takes lines again when it is changed."""
    await made(ask, "recent", "Memory")
    rule = "brokerloginclusionrule/recent/mine"
    slow = {"type": "UserOrConnectionSpecific", "loggerName": f"{__name__}", "level": "DEBUG", "username": "(a|aa)+$"}
    assert (await ask("PUT", rule, slow))[0] == 201
    say("theirs", "debug", user="a" * 60 + "!")

    async def told() -> Any:
        found = (await ask("GET", rule))[1]
        return found if found["state"] == "ERRORED" else None

    assert "until it is changed" in (await until(told))["trouble"]
    assert (await ask("POST", rule, {"username": "a+"}))[0] == 200
    assert (await ask("GET", rule))[1]["state"] == "ACTIVE"
    say("mine", "debug", user="aa")
    await until(lambda: _with(ask, "mine user=aa"))


async def test_file(ask: Ask, mgmt: Service, tmp_path: Path) -> None:
    """Has its lines in its layout, is told with its size, and given, as it is or in an archive."""
    await made(ask, "file", "File", fileName="folder/a.log", layout="%level %msg%n", maxFileSize=1)
    path = tmp_path / "log" / "folder" / "a.log"
    say("a thing", number=1)
    await until(lambda: _has(path, b"INFO a thing number=1\n"))
    (told,) = (await ask("GET", "brokerlogger/file"))[1]["logFiles"]
    assert (told["name"], told["size"]) == ("a.log", 22)
    for number in range(200):
        say("x" * 1900, number=number, more="y" * 1900, most="z" * 1900)
        await asyncio.sleep(0)
    await until(lambda: _has(path.with_name("a.log.1"), b"number=0\n"))
    assert (await ask("GET", "brokerlogger/file/getFile?fileName=a.log"))[1].startswith("INFO ")
    assert len((await ask("GET", "brokerlogger/file/getFile?fileName=a.log.1"))[1]) > 1 << 19
    assert (await ask("GET", "brokerlogger/file/getFile?fileName=../../secret"))[0] == 404
    archive = await asyncio.to_thread(_archive, mgmt.http_port)
    assert sorted(archive.namelist()) == ["a.log", "a.log.1"]
    assert archive.read("a.log.1").startswith(b"INFO a thing number=1\n")
    assert (await ask("DELETE", "brokerlogger/file"))[0] == 200
    assert path.exists()


async def _has(path: Path, text: bytes) -> bool:
    return await asyncio.to_thread(lambda: path.exists() and text in path.read_bytes())


def _archive(port: int) -> zipfile.ZipFile:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/latest/brokerlogger/file/getAllFiles")
    request.add_header("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
    with urllib.request.urlopen(request, timeout=LONG) as answer:
        assert answer.headers["Content-Type"] == "application/zip"
        return zipfile.ZipFile(io.BytesIO(answer.read()))


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"fileName": "../outside.log"}, "is not below"),
        ({"fileName": "/etc/passwd"}, "HOPLINE_LOG_FOLDER"),
        ({"fileName": "taken/a.log"}, "cannot be written"),
        ({"fileName": "a.log.1"}, "former file"),
        ({"fileName": "a\0b"}, "fileName"),
        ({"fileName": "other.log"}, "logger 'other' writes"),
        ({"maxFileSize": 0}, "maxFileSize"),
        ({"maxHistory": 100_000}, "maxHistory"),
        ({"layout": "%mdc"}, "%mdc means nothing"),
        ({"maxRecords": 3}, "has none of that name"),
        ({"type": "Memory", "maxRecords": 0}, "maxRecords"),
        ({"type": "Memory", "maxRecords": 1 << 20}, "16384"),
        ({"type": "Console"}, "standard error"),
        ({"type": "Syslog", "port": 0}, "port"),
        ({"type": "Graylog"}, "mandatory"),
        ({"type": "Odd"}, "type"),
    ],
)
async def test_what_cannot_be(ask: Ask, tmp_path: Path, wanted: dict[str, Any], reason: str) -> None:
    """Is refused with the reason, and nothing is made, changed, or lost."""
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "taken").touch()
    for name in ("other", "mine"):
        await made(ask, name, "File", fileName=f"{name}.log")
    status, told = await ask("PUT", "brokerlogger/new", {"type": "File", **wanted})
    assert (status, reason in json.dumps(told)) == (422, True)
    if wanted.get("type", "File") == "File":
        status, told = await ask("PUT", "brokerlogger/mine", wanted)
        assert (status, reason in json.dumps(told)) == (422, True)
    loggers = (await ask("GET", "brokerlogger?orderBy=name"))[1]
    assert [(each["name"], each["state"]) for each in loggers] == [
        ("mine", "ACTIVE"),
        ("other", "ACTIVE"),
        ("stderr", "ACTIVE"),
    ]
    say("goes on")
    await until(lambda: _has(tmp_path / "log" / "mine.log", b"goes on"))


async def test_files_are_looked_at_elsewhere(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is slow keeps no other request waiting: nothing of it is asked in the event loop's thread."""
    here, asked, folder = threading.get_ident(), list[str](), tmp_path / "log"

    def noting(name: str, its: Callable[..., Any]) -> Callable[..., Any]:
        def noted(path: Path, *more: Any, **rest: Any) -> Any:
            if threading.get_ident() == here and folder in (path, *path.parents):
                asked.append(f"{name} {path}")
            return its(path, *more, **rest)

        return noted

    for name in ("stat", "resolve", "iterdir", "open"):
        monkeypatch.setattr(Path, name, noting(name, getattr(Path, name)))
    await made(ask, "file", "File", fileName="a.log")
    assert (await ask("POST", "brokerlogger/file", {"maxHistory": 3}))[0] == 200
    assert (await ask("GET", "brokerlogger/file"))[1]["logFiles"]
    assert (await ask("GET", "brokerlogger/file/getFile?fileName=a.log"))[0] == 200
    assert not asked


async def test_a_disk_in_trouble(ask: Ask, tmp_path: Path) -> None:
    """Is told of the logger; its lines wait, and get there when it is well again."""
    await made(ask, "file", "File", fileName="folder/a.log")
    folder = tmp_path / "log" / "folder"
    (folder / "a.log").unlink()
    folder.rmdir()
    folder.touch()
    say("in vain")

    async def errored() -> bool:
        told = (await ask("GET", "brokerlogger/file"))[1]
        return told["state"] == "ERRORED" and bool(told["trouble"])

    await until(errored)
    folder.unlink()
    await until(lambda: _has(folder / "a.log", b"in vain"))


async def test_after_a_restart(ask: Ask, mgmt: Service, settings: Settings) -> None:
    """Loggers and rules are there again, and a file goes on where it was."""
    await made(ask, "file", "File", fileName="a.log")
    path = settings.log_path / "a.log"
    say("before")
    await until(lambda: _has(path, b"before"))
    await mgmt.stop()
    say("meanwhile")
    again = Service(settings)
    await again.start()
    try:
        say("after")
        await until(lambda: _has(path, b"after"))
        assert [path.read_bytes().count(word) for word in (b"before", b"meanwhile", b"after")] == [1, 1, 1]
        told = (await asking(again.http_port)("/api/latest/brokerlogger/file"))[1]
        assert told["fileName"] == "a.log"
    finally:
        await again.stop()


async def test_standard_error_stays(ask: Ask) -> None:
    """It is how processes were started."""
    assert (await ask("DELETE", "brokerlogger/stderr"))[0] == 403
    assert (await ask("PUT", "brokerlogger/stderr", {"layout": "%msg"}))[0] == 403


async def test_who_may_read(get: Get, ask: Ask) -> None:
    """Who may observe the broker, which includes its logs; to make loggers is to configure it."""
    await made(ask, "recent", "Memory")
    for name, tags in (("watcher", "monitoring"), ("nobody", "management")):
        user = {"password": "secret", "tags": tags}
        assert (await get(f"/api/users/{name}", "guest:guest", "PUT", user))[0] in {201, 204}
    path = "/api/latest/brokerlogger/recent/getLogEntries"

    async def seen() -> bool:
        return bool((await get(path, "watcher:secret"))[0] == 200)

    await until(seen)
    assert (await get(path, "nobody:secret"))[0] == 403
    assert (await get("/api/latest/brokerlogger/more", "watcher:secret", "PUT", {"type": "Memory"}))[0] == 403
