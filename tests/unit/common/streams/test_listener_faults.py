"""A fault of ours in what listens to one stream."""

from __future__ import annotations

import grpc
import pytest
from structlog.testing import capture_logs

from services.common.streams.client import connect
from services.common.streams.stream import Stream
from tests.support.stream_ends import METHOD, Heard, echo, grpc_serving, serving, until, within


class _Fails(Heard):
    """Where it is told to."""

    def __init__(self, stream: Stream | None = None, where: bytes = b"received") -> None:
        super().__init__(stream, echo=True)
        self._where = where

    def received(self, message: bytes) -> None:
        self._where = message
        self._fail(b"received")
        super().received(message)

    def ended(self, reason: str) -> None:
        super().ended(reason)
        self._fail(b"ended")

    def _fail(self, where: bytes) -> None:
        if self._where == where:
            raise RuntimeError("a fault of ours")


async def test_a_message_that_cannot_be_carried_out(address: str) -> None:
    """Ends its stream with INTERNAL; others of the same connection go on, and the log says where it happened."""
    async with serving(address, _Fails) as served, grpc.aio.insecure_channel(served.address) as channel:
        bad, good = channel.stream_stream(METHOD)(), channel.stream_stream(METHOD)()
        await good.write(b"x")
        assert await within(good.read()) == b"x"
        with capture_logs() as lines:
            await bad.write(b"received")
            assert await within(bad.code()) == grpc.StatusCode.INTERNAL
        await good.write(b"y")
        assert await within(good.read()) == b"y"
        good.cancel()
    assert [(line["event"], line["log_level"]) for line in lines] == [("a stream fails", "error")]
    assert sorted(len(heard.reasons) for heard in served.heard) == [1, 1]


async def test_an_end_that_cannot_be_carried_out(address: str) -> None:
    """Is logged, and all others are told of theirs."""
    async with serving(address, _Fails) as served:
        async with grpc.aio.insecure_channel(served.address) as channel:
            calls = [channel.stream_stream(METHOD)() for _ in range(3)]
            for call in calls:
                await call.write(b"ended")
                assert await within(call.read()) == b"ended"
            with capture_logs() as lines:
                calls[0].cancel()
                await until(lambda: any(heard.reasons for heard in served.heard))
                await calls[1].write(b"ended")
                assert await within(calls[1].read()) == b"ended"
                await channel.close()
                await until(lambda: all(heard.reasons for heard in served.heard))
        assert [line["log_level"] for line in lines] == ["error"] * 3


async def test_a_stream_that_cannot_be_accepted(address: str) -> None:
    """Ends with an error of the server's; the connection and its other streams go on."""

    def create(stream: Stream) -> Heard:
        if stream.number != 1:
            raise RuntimeError("a fault of ours")
        return Heard(stream, echo=True)

    async with serving(address, create) as served, grpc.aio.insecure_channel(served.address) as channel:
        good = channel.stream_stream(METHOD)()
        await good.write(b"x")
        assert await within(good.read()) == b"x"
        with capture_logs() as lines:
            bad = channel.stream_stream(METHOD)()
            assert await within(bad.code()) in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
        await good.write(b"y")
        assert await within(good.read()) == b"y"
        good.cancel()
    assert [line["log_level"] for line in lines] == ["error"]


@pytest.mark.parametrize("where", ["received", "ended"])
async def test_a_clients_fault(address: str, where: str) -> None:
    """Ends its stream, which hears of it; another stream to the same server goes on."""
    bad, good = _Fails(), Heard()
    with capture_logs() as lines:
        async with grpc_serving(address, echo) as target:
            failing = await connect(target, METHOD, bad)
            stream = await connect(target, METHOD, good)
            failing.write(where.encode())
            if where == "received":
                await until(lambda: bad.reasons)
            stream.write(b"x")
            await until(lambda: good.messages)
        await until(lambda: good.reasons and bad.reasons)
        failing.close()
        stream.close()
    assert "error" in [line["log_level"] for line in lines]
