"""What a gRPC method raises is its answer."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.common.clients.calls import result, stream
from services.common.errors import BrokerError, InternalError, NotFound, PreconditionFailed
from services.common.grpc_channel import connect
from services.common.grpc_server import Server
from services.rpc import router_pb2, router_pb2_grpc


class _Faulty(router_pb2_grpc.RouterServicer):
    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    async def Describe(self, request: Any, context: Any) -> Any:
        raise self._fault

    async def Watch(self, frames: Any, context: Any) -> AsyncIterator[Any]:
        yield router_pb2.TopologyFrame(version=7)
        raise self._fault


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (ZeroDivisionError("ours"), InternalError),
        (RecursionError(), InternalError),
        (NotFound("yours"), NotFound),
        (PreconditionFailed("ü" * 100_000), PreconditionFailed),
    ],
)
async def test_the_fault_is_the_answer(tmp_path: Path, fault: Exception, kind: type[BrokerError]) -> None:
    """An unexpected one is an internal error, an expected one is itself, however long its text is."""
    server = Server(f"unix:{tmp_path}/s", ["hopline.router.Router"])
    router_pb2_grpc.add_RouterServicer_to_server(_Faulty(fault), server.grpc)
    await server.listen()
    channel = connect(f"unix:{tmp_path}/s")
    stub: router_pb2_grpc.RouterAsyncStub = router_pb2_grpc.RouterStub(channel)
    with capture_logs() as told:
        with pytest.raises(BrokerError) as raised:
            await result(stub.Describe(router_pb2.DescribeRequest()))
        assert type(raised.value) is kind
        frames = stream(stub.Watch(iter([router_pb2.WatcherFrame()])))
        assert (await anext(frames)).version == 7
        with pytest.raises(BrokerError) as raised:
            await anext(frames)
        assert type(raised.value) is kind
    assert all("do" in each for each in told if each["log_level"] == "error")
    await channel.close()
    await server.stop(0)
