from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from nats.errors import Error

from services.common import runtime
from services.common.bus import nats_link
from services.common.bus.nats_link import Away, NatsLink

_INFO = {"server_id": "A", "version": "2.10.0", "proto": 1, "max_payload": 1048576, "headers": True}


class LateServer:
    """As much of NATS as greets a client, and then answers its pings when it is told to."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()  # an answer to the server's own ping
        self._pings = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        writer.write(b"INFO " + json.dumps(_INFO).encode() + b"\r\n")
        while line := await reader.readline():
            if line == b"PONG\r\n":
                self.heard.set()
            elif line == b"PING\r\n":
                self._pings += 1
                if self._pings == 1:  # of the greeting
                    writer.write(b"PONG\r\n")
        writer.close()

    def answer(self) -> None:
        self._writer.write(b"PONG\r\nPING\r\n")


class FullServer(LateServer):
    """One that has as many connections as it may, until so many more have come."""

    def __init__(self, refuses: int) -> None:
        super().__init__()
        self.refuses = refuses

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            self.refuses -= 1
            writer.write(b"INFO " + json.dumps(_INFO).encode() + b"\r\n-ERR 'maximum connections exceeded'\r\n")
            writer.close()
        else:
            await super().serve(reader, writer)


async def test_a_server_that_is_full_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers keep it full, and each of them for a moment: it is tried again, with pauses, within one attempt."""
    monkeypatch.setattr(nats_link, "_CONNECT_SECONDS", 60)
    full = FullServer(refuses=5)
    async with await asyncio.start_server(full.serve, "127.0.0.1", 0) as server:
        link = await NatsLink.connect(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", "one")
        assert (link.up, full.refuses) == (True, 0)
        await link.close()


async def test_a_server_that_stays_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told why, and has not asked without a pause."""
    monkeypatch.setattr(nats_link, "_CONNECT_SECONDS", 0.3)
    full = FullServer(refuses=1000)
    async with await asyncio.start_server(full.serve, "127.0.0.1", 0) as server:
        with pytest.raises(Away, match=r"maximum connections exceeded|[Ll]ost|[Rr]eset|EOF|no answer"):
            await NatsLink.connect(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", "one")
    assert full.refuses >= 1000 - 8


class DeafClient:
    """Takes every cancellation for its own, as NATS's does where an answer comes in the same moment."""

    async def connect(self, *_address: str, **_options: object) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        raise Error("nats: 'Authorization Violation'")

    async def close(self) -> None:
        """Has nothing to end."""


async def test_a_refusal_that_comes_as_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client says it instead of being cancelled: the caller is told, and the server is not tried for ever."""
    monkeypatch.setattr(nats_link, "_CONNECT_SECONDS", 0.01)
    monkeypatch.setattr(nats_link, "_create", DeafClient)
    async with asyncio.timeout(30):
        with pytest.raises(Away, match="Authorization Violation"):
            await NatsLink.connect("nats://127.0.0.1:4222", "one")


class RestlessClient(DeafClient):
    """Goes on to the next attempt of its own instead, as NATS's does where it is refused in the same moment."""

    async def connect(self, *_address: str, **_options: object) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)


async def test_a_client_that_goes_on_as_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told that nobody answers, while nobody does."""
    monkeypatch.setattr(nats_link, "_CONNECT_SECONDS", 0.01)
    monkeypatch.setattr(runtime, "_CANCEL_AGAIN", 0.01)
    monkeypatch.setattr(nats_link, "_create", RestlessClient)
    async with asyncio.timeout(30):
        with pytest.raises(Away, match="no answer"):
            await NatsLink.connect("nats://127.0.0.1:4222", "one")


@pytest.mark.parametrize("address", ["nats://127.0.0.1:99999", "nats://127.0.0.1:none"])
async def test_an_address_that_is_none(address: str) -> None:
    """The client asserts that it has connected when it is closed; the caller gets the reason why it has not."""
    with pytest.raises(Away, match=r"[Pp]ort|invalid"):
        await NatsLink.connect(address, "one")


async def test_an_answer_that_comes_too_late(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """An answer that comes after its caller gave up, when this process was held up, is no error and no traceback."""
    monkeypatch.setattr(nats_link, "_ANSWER_SECONDS", 0.05)
    late = LateServer()
    async with await asyncio.start_server(late.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        link = await NatsLink.connect(f"nats://127.0.0.1:{port}", "one")
        with pytest.raises(Away, match="no answer within"):
            await link.send([("subject", b"payload")])
        late.answer()
        await asyncio.wait_for(late.heard.wait(), 5)
        await link.close()
    assert caplog.text == ""
