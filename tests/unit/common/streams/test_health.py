"""Health checking and reflection of a StreamServer, with gRPC's own clients."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from structlog.testing import capture_logs

from tests.support.stream_ends import Served, serving, within

_SERVING, _NOT_SERVING = pb.HealthCheckResponse.SERVING, pb.HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize("service", ["", "test.Bytes"])
async def test_a_check(address: str, service: str) -> None:
    """NOT_SERVING until the server is ready; of the server and of each service."""
    served = Served(address)
    await served.server.listen()
    async with grpc.aio.insecure_channel(served.address) as channel:
        check = HealthStub(channel).Check
        assert (await within(check(pb.HealthCheckRequest(service=service)))).status == _NOT_SERVING
        await served.server.ready()
        assert (await within(check(pb.HealthCheckRequest(service=service)))).status == _SERVING
    await served.server.stop(0)


async def test_a_check_of_a_service_that_is_not_there(address: str) -> None:
    """Is NOT_FOUND."""
    async with serving(address) as served, grpc.aio.insecure_channel(served.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await within(HealthStub(channel).Check(pb.HealthCheckRequest(service="nobody")))
    assert failure.value.code() == grpc.StatusCode.NOT_FOUND


async def test_a_check_that_cannot_be_read(address: str) -> None:
    """Is INTERNAL, and no fault of ours."""
    async with serving(address) as served, grpc.aio.insecure_channel(served.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await within(channel.unary_unary("/grpc.health.v1.Health/Check")(b"\xff\xff"))
    assert failure.value.code() == grpc.StatusCode.INTERNAL


async def test_a_list(address: str) -> None:
    """Is not offered, to nobody; any peer can ask, and no line of the log is written."""
    async with serving(address) as served, grpc.aio.insecure_channel(served.address) as channel:
        with capture_logs() as logs, pytest.raises(grpc.aio.AioRpcError) as failure:
            await within(channel.unary_unary("/grpc.health.v1.Health/List")(b""))
    assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert not logs


async def test_a_watch(address: str) -> None:
    """Hears every change, the last when the server stops; then it ends."""
    served = Served(address)
    await served.server.listen()
    async with grpc.aio.insecure_channel(served.address) as channel:
        watch = HealthStub(channel).Watch(pb.HealthCheckRequest(service="test.Bytes"))
        assert (await within(watch.read())).status == _NOT_SERVING
        await served.server.ready()
        assert (await within(watch.read())).status == _SERVING
        stopping = asyncio.create_task(served.server.stop(0.1))
        assert (await within(watch.read())).status == _NOT_SERVING
        await within(stopping)
        assert await within(watch.code()) == grpc.StatusCode.UNAVAILABLE


async def test_a_watch_that_is_cancelled(address: str) -> None:
    """Leaves nothing running."""
    async with serving(address) as served, grpc.aio.insecure_channel(served.address) as channel:
        watch = HealthStub(channel).Watch(pb.HealthCheckRequest())
        assert (await within(watch.read())).status == _SERVING
        [task] = served.server.tasks._tasks
        watch.cancel()
        await within(asyncio.wait({task}))
        assert task.cancelled()


async def test_reflection(address: str) -> None:
    """Names the services and describes them, to a client of threads."""
    async with serving(address) as served:

        def look() -> tuple[list[str], list[str]]:
            with grpc.insecure_channel(served.address) as channel:
                database = ProtoReflectionDescriptorDatabase(channel)
                health = DescriptorPool(database).FindServiceByName("grpc.health.v1.Health")
                return sorted(database.get_services()), sorted(method.name for method in health.methods)

        names, methods = await within(asyncio.to_thread(look))
    assert names == ["grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection", "test.Bytes"]
    assert {"Check", "Watch"} <= set(methods)
