"""A journal whose stream cannot be written to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.store import Journal
from services.common.clock import monotonic
from services.common.grpc_server import Server
from services.common.streams.client_call import ClientCall
from services.rpc.store_pb2 import JournalFrame
from services.rpc.store_pb2_grpc import add_StoreServicer_to_server
from services.store.engine import Engine
from services.store.handler import Handler
from services.store.providers.memory import MemoryProvider

_PATIENCE = 60.0


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    """Of a store."""
    engine = Engine(MemoryProvider(tmp_path), 1000, monotonic, lambda _: None)
    await engine.start()
    address = f"unix:{tmp_path}/store.sock"
    server = Server(address, ["hopline.store.Store"])
    add_StoreServicer_to_server(Handler(engine), server.grpc)
    await server.listen()
    yield address
    await server.stop(0)
    await engine.stop()


@pytest.fixture
async def journal(address: str) -> AsyncIterator[Journal]:
    journal = Journal(address, "test")
    await journal.start()
    yield journal
    await journal.stop()


def _fails_once(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    real, failed = getattr(ClientCall, method), False

    def fails(call: ClientCall, request: Any) -> Any:
        nonlocal failed
        if failed or not isinstance(request, JournalFrame):
            return real(call, request)
        failed = True
        raise ZeroDivisionError

    monkeypatch.setattr(ClientCall, method, fails)


async def _written(*answers: asyncio.Future[Any]) -> list[int]:
    async with asyncio.timeout(_PATIENCE):
        return [each.sequence for each in await asyncio.gather(*answers)]


async def test_a_frame_that_fails_as_it_is_handed_over(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goes with the next stream, once and in its place: no caller gets an error for what may be written."""
    assert await _written(journal.append(JournalFrame())) == [1]
    _fails_once(monkeypatch, "write_now")
    assert await _written(journal.append(JournalFrame()), journal.append(JournalFrame())) == [2, 3]
    assert not journal._waiting


async def test_a_sender_that_fails(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends its stream, and there is another: frames would wait for ever for one that nobody sends on."""
    _fails_once(monkeypatch, "write")
    assert await _written(*[journal.append(JournalFrame()) for _ in range(3)]) == [1, 2, 3]
