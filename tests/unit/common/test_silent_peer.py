"""A peer that stands still: its kernel answers for it, and its callers find out all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common import grpc_channel
from tests.support.ports import free_port
from tests.support.stack import HOST
from tests.support.store_process import StoreProcess


@pytest.fixture(params=["unix", "tcp"])
async def process(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreProcess]:
    more = {"store_address": f"{HOST}:{free_port()}"} if request.param == "tcp" else {}
    process = StoreProcess(tmp_path / "data", store_provider="memory", **more)
    await process.start()
    yield process
    await process.stop()


async def ends(process: StoreProcess, seconds: float) -> None:
    """A stream from it, once it stands still, within so many seconds."""
    async with grpc_channel.connect(process.address) as channel:
        watching = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert isinstance(await watching.read(), health_pb2.HealthCheckResponse)
        await process.pause()
        with pytest.raises(grpc.aio.AioRpcError, match="ping timeout"):
            await asyncio.wait_for(watching.read(), seconds)


async def test_where_another_may_take_over(process: StoreProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within seconds, on this machine too."""
    monkeypatch.setattr(grpc_channel, "_doubts", False)
    grpc_channel.doubt_silence()
    await ends(process, 10)


@pytest.mark.parametrize("process", ["tcp"], indirect=True)
async def test_over_a_network(process: StoreProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of pings counts: gRPC's own patience with them is a minute."""
    sooner = dict(grpc_channel._OVER_THE_NETWORK) | {"grpc.keepalive_time_ms": 1000}
    monkeypatch.setattr(grpc_channel, "_OVER_THE_NETWORK", list(sooner.items()))
    await ends(process, 20)
