"""Loggers whose lines go to another machine: to receivers that are there, are not, and take nothing."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from services.mgmt.loggers import graylog, outbox
from services.mgmt.loggers.graylog import GraylogSink
from services.mgmt.loggers.layout import Layout
from services.mgmt.loggers.syslog import Syslog, SyslogSink
from services.rpc.logs_pb2 import Line

TIME_US = 1_764_201_600_250_000  # 2025-11-27 00:00:00.25 UTC


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_AGAIN", 0.01)
    monkeypatch.setattr(outbox, "_LAST", 0.1)


def _line(text: str, **said: str) -> Line:
    told = {"level": "WARN", "logger": "services.queue.x", "instance": "queue-1", **said}
    return Line(text=text, time_us=TIME_US, **told)  # type: ignore[arg-type]


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


# -------------------------------------------------------------- syslog


@pytest.fixture
def daemon() -> Iterator[socket.socket]:
    """A syslog daemon."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(60)
        yield listening


def _syslog(port: int) -> SyslogSink:
    return SyslogSink("127.0.0.1", port, Layout(str(Syslog.defaults["suffixPattern"]), "suffixPattern"))


async def test_syslog(daemon: socket.socket) -> None:
    """RFC 3164, section 4.1: priority, time stamp with a blank before a short day, host, and what Logback has then."""
    sink = _syslog(daemon.getsockname()[1])
    sink.take([_line("a thing"), _line("bad", level="ERROR")])
    first, second = [(await asyncio.to_thread(daemon.recv, 65536)).decode() for _ in range(2)]
    told = re.fullmatch(r"<(\d+)>(\S+ [ \d]\d \d\d:\d\d:\d\d) ([^ .]+) (.*)", first)
    assert told
    assert told.groups() == (
        "28", "Nov 27 00:00:00", socket.gethostname().partition(".")[0],
        "Hopline WARN [queue-1] (s.q.x) - a thing",
    )  # fmt: skip
    assert second.startswith("<27>")
    await sink.close()


async def test_a_syslog_daemon_that_is_not_there(daemon: socket.socket) -> None:
    """It is told, also of a single line; lines get there when the daemon is back."""
    port = daemon.getsockname()[1]
    daemon.close()
    sink = _syslog(port)

    def told() -> bool:
        sink.take([_line("a thing")])  # a single one; a busy machine may answer only to the next
        return sink.trouble == "Connection refused"

    await _until(told)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as back:
        back.bind(("127.0.0.1", port))
        back.settimeout(60)
        assert (await asyncio.to_thread(back.recv, 65536)).endswith(b"a thing")
        await _until(lambda: not sink.trouble)
    await sink.close()


# -------------------------------------------------------------- Graylog


class _Graylog:
    """Takes messages as GELF over TCP has them: a zero byte after each."""

    def __init__(self) -> None:
        self.port = 0
        self.messages: list[dict[str, object]] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._each, "127.0.0.1", self.port, limit=1 << 16)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        for each in self._writers:
            each.close()

    async def _each(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                await self.reads.wait()
                self.messages.append(json.loads((await reader.readuntil(b"\0"))[:-1]))
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    @property
    def texts(self) -> list[object]:
        return [each["short_message"] for each in self.messages]


@pytest.fixture
async def server() -> AsyncIterator[_Graylog]:
    made = _Graylog()
    await made.start()
    yield made
    await made.stop()


def _sink(port: int) -> GraylogSink:
    return GraylogSink(
        {"remoteHost": "127.0.0.1", "port": port, "messageOriginHost": "here", "staticFields": {"site": "eu"}}
    )


async def test_graylog(server: _Graylog) -> None:
    """GELF 1.1: its fields, and those of a line behind underscores."""
    sink = _sink(server.port)
    sink.take([_line("a thing\nand more", user="me"), _line("bad", level="ERROR")])
    await _until(lambda: len(server.messages) == 2)
    assert server.messages[0] == {
        "version": "1.1", "host": "here", "short_message": "a thing", "full_message": "a thing\nand more",
        "timestamp": TIME_US / 1e6, "level": 4, "_logger": "services.queue.x", "_instance": "queue-1", "_user": "me",
        "_level_name": "WARN", "_site": "eu",
    }  # fmt: skip
    assert server.messages[1]["level"] == 3
    await sink.close()


async def test_a_graylog_that_goes_and_comes_back(server: _Graylog) -> None:
    """No line is lost of those that come while it is away, the first one included."""
    sink = _sink(server.port)
    sink.take([_line("first")])
    await _until(lambda: server.texts == ["first"])
    await server.stop()
    await _until(lambda: sink._reader is None or sink._reader.at_eof())
    sink.take([_line("second")])
    await _until(lambda: "does not take them" in sink.trouble)
    await server.start()
    await _until(lambda: server.texts == ["first", "second"])
    await _until(lambda: not sink.trouble)
    await sink.close()


async def test_the_end_of_a_graylog_that_takes_nothing(server: _Graylog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its socket is closed, and what it has not taken is not kept, although there is no more to be sent."""
    monkeypatch.setattr(graylog, "_LAST", 0.1)
    server.reads.clear()
    sink = _sink(server.port)
    sink.take([_line("first")])
    await _until(lambda: sink._writer and not sink._waiting)
    writer = sink._writer
    assert writer
    writer.write(bytes(64 << 20))  # as much as its machine and this one do not keep
    await sink.close()
    assert writer.transport.get_write_buffer_size() == 0


async def test_a_busy_machine(server: _Graylog, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long it takes to write lines as GELF is not held against who is to take them: none ever got there then."""
    monkeypatch.setattr(graylog, "_PATIENCE", 0.5)
    troubles, sink, write = list[str](), _sink(server.port), json.dumps

    def slow(*told: object, **how: object) -> str:
        time.sleep(0.6)
        return write(*told, **how)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(sink, "_troubled", lambda error: troubles.append(str(error)))
    monkeypatch.setattr(graylog.json, "dumps", slow)
    sink.take([_line("a thing")])
    await _until(lambda: troubles or server.texts == ["a thing"])
    assert not troubles
    await sink.close()


async def test_a_graylog_that_takes_nothing(server: _Graylog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who logs does not wait for it; so many lines are kept, the latest, and nothing stays in buffers of sockets."""
    monkeypatch.setattr(graylog, "_PATIENCE", 0.2)
    monkeypatch.setattr(outbox, "_WAITING", 2000)
    opened, connect = list[asyncio.StreamWriter](), asyncio.open_connection

    async def noted(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await connect(host, port)
        opened.append(writer)
        return reader, writer

    monkeypatch.setattr(asyncio, "open_connection", noted)
    server.reads.clear()
    sink = _sink(server.port)
    for number in range(4000):
        sink.take([_line(f"{number} " + "x" * 8000)])
    await _until(lambda: "does not take them" in sink.trouble)
    await _until(lambda: len(opened) > 2)
    assert all(not each.transport.get_write_buffer_size() for each in opened[:-1])
    assert len(sink._waiting) <= 2000
    monkeypatch.setattr(graylog, "_PATIENCE", 60.0)
    server.reads.set()
    await _until(lambda: any(str(each).startswith("3999 ") for each in server.texts))
    assert any("lines are missing here" in str(each) for each in server.texts)
    await sink.close()
