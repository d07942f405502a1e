from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from services.common import probe
from services.common.grpc_server import Server
from tests.support.ports import free_port


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
async def server(port: int) -> AsyncIterator[Server]:
    """One that listens, and is not ready."""
    listening = Server(f"127.0.0.1:{port}", ["hopline.test.Test"])
    await listening.listen()
    yield listening
    await listening.stop(0)


async def test_ready(server: Server, port: int) -> None:
    """A server that says SERVING is well, and only from then on."""
    assert not await asyncio.to_thread(probe.is_serving, "127.0.0.1", port)
    await server.ready()
    assert await asyncio.to_thread(probe.is_serving, "127.0.0.1", port)


async def test_as_a_program(server: Server, port: int) -> None:
    """The exit status is what Docker reads: 0 for well, 1 for anything else."""
    command = [sys.executable, "-m", "services.common.probe", f"127.0.0.1:{port}"]
    assert (await asyncio.to_thread(subprocess.run, command, check=False)).returncode == 1
    await server.ready()
    assert (await asyncio.to_thread(subprocess.run, command, check=False)).returncode == 0


def test_nobody_listens(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A service that is gone is not well, and the reason is told."""
    assert probe.main([f"127.0.0.1:{port}"]) == 1
    assert capsys.readouterr().err.startswith(f"no answer from 127.0.0.1:{port}: ")


def test_silence() -> None:
    """A service that accepts and then hangs is not well."""
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(TimeoutError):
        probe.is_serving("127.0.0.1", listener.getsockname()[1], 0.1)


@pytest.mark.parametrize("length", range(1, 30))
def test_answer_in_pieces(length: int) -> None:
    """However the reply is cut, it is the same reply."""
    frames = probe._frame(4, 0, 0, b"") + probe._frame(1, 4, 1, b"\x88") + probe._frame(0, 0, 1, probe._SERVING)
    left, answer = b"", None
    for start in range(0, len(frames), length):
        answer, left = probe._answer(left + frames[start : start + length])
    assert answer == probe._SERVING


@pytest.mark.parametrize("last", [probe._frame(7, 0, 0, bytes(8)), probe._frame(1, 5, 1, b"\x88")])
def test_refusal(last: bytes) -> None:
    """A server that goes away, or ends the call without a message, is not well."""
    assert probe._answer(probe._frame(4, 0, 0, b"") + last) == (b"", b"")
