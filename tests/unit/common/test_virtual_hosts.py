from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from services.common.clients import virtual_hosts
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.common.errors import Unavailable
from services.common.grpc_server import Server
from services.rpc import router_pb2_grpc


class _Waits(router_pb2_grpc.RouterServicer):
    async def Change(self, _request: Any, _context: Any) -> Any:  # noqa: N802 - as gRPC has it
        await asyncio.Event().wait()


async def test_a_router_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A router that serves and does not do it in time is not said to be away, as one is that does not serve."""
    monkeypatch.setattr(virtual_hosts, "_DEADLINE", 0.2)
    address = f"unix:{tmp_path}/router.sock"
    server = Server(address, [])
    router_pb2_grpc.add_RouterServicer_to_server(_Waits(), server.grpc)
    await server.listen()
    await server.ready()
    async with VirtualHostsClient(address) as client:
        with pytest.raises(Unavailable, match="waits for the store") as waits:
            await client.create("v")
        await server.stop(0)
        with pytest.raises(Unavailable) as away:
            await client.create("v")
    assert (waits.value.answered, away.value.answered) == (True, False)
