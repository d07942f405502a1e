"""Ctrl-C ends a command, also inside a library; and how an error of a called service is shown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator

import pytest
import typer
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata

from services.cli import quick
from services.cli.asking import run
from services.common.grpc_errors import KIND_KEY, from_rpc


async def _deaf() -> None:
    """Takes the first cancellation for its own, as NATS's client may."""
    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await asyncio.sleep(60)


async def _fails() -> None:
    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(60)
    finally:
        raise OSError("while it ended")


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """As in a process of its own: tests of services leave another handler behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before or signal.default_int_handler)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("work", [_deaf, _fails])
def test_interrupted(work: object) -> None:
    """Also one that takes a cancellation for one of its own, or fails while it ends."""
    with pytest.raises(KeyboardInterrupt):
        run(work())  # type: ignore[operator]


async def _says(metadata: Metadata) -> None:
    raise from_rpc(AioRpcError(StatusCode.UNAVAILABLE, Metadata(), metadata, "the store does not answer"))


def test_a_peer_that_waits_for_another(capsys: pytest.CaptureFixture[str]) -> None:
    """A service that answers with an error is not reported as away; one that does not answer is."""
    with pytest.raises(typer.Exit):
        run(_says(Metadata((KIND_KEY, "Unavailable"))), "router.sock")
    assert capsys.readouterr().err == "the store does not answer\n"
    with pytest.raises(typer.Exit):
        run(_says(Metadata()), "router.sock")
    assert "no answer from router.sock; does Hopline run?" in capsys.readouterr().err


def test_arguments_that_are_no_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Are refused in a line, for every command: nothing can be called with them."""
    monkeypatch.setattr(sys, "argv", ["hopline", "queues", "show", os.fsdecode(b"caf\xe9")])
    with pytest.raises(SystemExit) as ended:
        quick.Quick()()
    assert (ended.value.code, capsys.readouterr().err) == (2, "b'caf\\xe9' is no text in UTF-8\n")
