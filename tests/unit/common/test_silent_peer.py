"""A peer that stands still: its kernel answers for it, and its callers find out all the same."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common import grpc_channel
from services.common.streams.endpoint import Doubt
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
        with pytest.raises(grpc.aio.AioRpcError, match="does not answer"):
            await asyncio.wait_for(watching.read(), seconds)


async def test_where_another_may_take_over(process: StoreProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within seconds, on this machine too."""
    monkeypatch.setattr(grpc_channel, "_doubts", False)
    grpc_channel.doubt_silence()
    await ends(process, 10)


@pytest.mark.parametrize("process", ["tcp"], indirect=True)
async def test_over_a_network(process: StoreProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its kernel is another machine's."""
    monkeypatch.setattr(grpc_channel, "_OF_CALLS", Doubt(1.0, 1.0))
    await ends(process, 20)


@pytest.mark.parametrize(("bulk", "milliseconds"), [(False, 1500), (True, 5000)])
@pytest.mark.parametrize("process", ["tcp"], indirect=True)
async def test_a_machine_that_takes_nothing(process: StoreProcess, bulk: bool, milliseconds: int) -> None:
    """The kernel gives its connection up before leases end; later where a peer that stands still may have no room."""
    async with grpc_channel.connect(process.address, bulk=bulk) as channel:
        await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), wait_for_ready=True)
        sock = cast("Any", channel)._end._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == milliseconds
