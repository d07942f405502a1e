"""A client of grpc.aio with our server."""

from __future__ import annotations

import grpc
import pytest

from services.common.streams.grpc_fields import trailers
from services.common.streams.stream import Stream
from tests.support.stream_ends import METHOD, Heard, bodies, grpc_call, same, serving, until, within


async def test_messages_of_all_sizes_go_both_ways(address: str) -> None:
    """From none to 20 MiB, whole and in order."""
    sent = bodies()
    async with serving(address) as served, grpc_call(served.address) as call:
        for body in sent:
            await call.write(body)
        come = [await within(call.read()) for _ in sent]
    assert same(come, sent)


async def test_the_end_of_a_client_ends_the_call(address: str) -> None:
    """With OK, after all answers; the listener hears that there was no fault, once."""
    async with serving(address) as served, grpc_call(served.address) as call:
        await call.write(b"x")
        await call.done_writing()
        assert await within(call.read()) == b"x"
        assert await within(call.read()) == grpc.aio.EOF
        assert await within(call.code()) == grpc.StatusCode.OK
        assert served.heard[0].reasons == [""]


@pytest.mark.parametrize("text", ["plain", "größer als 100 %: 数\n", "%25", ""])
async def test_status_and_message_arrive(address: str, text: str) -> None:
    """With any message, percent-encoded on its way (PROTOCOL-HTTP2.md: Status-Message)."""

    class Refuses(Heard):
        def received(self, message: bytes) -> None:
            assert self.stream
            self.stream.write(b"first")
            self.stream.end(trailers(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
            self.stream.write(b"lost")

    async with serving(address, Refuses) as served, grpc_call(served.address) as call:
        await call.write(b"x")
        assert await within(call.read()) == b"first"
        assert await within(call.code()) == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await within(call.details()) == text


@pytest.mark.parametrize("method", ["/test.Bytes/Nothing", "/nothing.At/All", "/"])
async def test_an_unknown_method(address: str, method: str) -> None:
    """Is UNIMPLEMENTED for its caller, with its name."""
    async with serving(address) as served:
        async with grpc_call(served.address, method) as call:
            assert await within(call.code()) == grpc.StatusCode.UNIMPLEMENTED
            assert method in await within(call.details())
        async with grpc.aio.insecure_channel(served.address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await within(channel.unary_unary(method)(b"x"))
            assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_what_else_a_client_says_does_not_matter(address: str) -> None:
    """Metadata, a name of its own, a deadline."""
    options = [("grpc.primary_user_agent", "someone else/1.0"), ("grpc.default_authority", "elsewhere:1")]
    metadata = [("x-key", "value"), ("x-some-bin", b"\xff\x00"), ("x-long", "y" * 5000)]
    async with serving(address) as served, grpc.aio.insecure_channel(served.address, options=options) as channel:
        call = channel.stream_stream(METHOD)(metadata=metadata, timeout=3600)
        await call.write(b"x")
        assert await within(call.read()) == b"x"
        call.cancel()


async def test_a_client_that_cancels(address: str) -> None:
    """Ends its stream: the listener is told, once, and the server goes on."""
    async with serving(address) as served:
        async with grpc_call(served.address) as call:
            await call.write(b"x")
            assert await within(call.read()) == b"x"
            call.cancel()
            await until(lambda: served.heard[0].reasons)
        async with grpc_call(served.address) as call:
            await call.write(b"y")
            assert await within(call.read()) == b"y"
        await until(lambda: served.heard[1].reasons)
    assert served.heard[0].reasons == ["the peer ended the stream (CANCEL)"]
    assert len(served.heard[1].reasons) == 1


async def test_streams_of_one_connection(address: str) -> None:
    """Each has a listener of its own, and ends alone."""
    async with serving(address) as served, grpc.aio.insecure_channel(served.address) as channel:
        calls = [channel.stream_stream(METHOD)() for _ in range(20)]
        for number, call in enumerate(calls):
            await call.write(b"%d" % number)
        assert [await within(call.read()) for call in calls] == [b"%d" % number for number in range(20)]
        calls[0].cancel()
        await until(lambda: sum(len(heard.reasons) for heard in served.heard) == 1)
        await calls[1].write(b"more")
        assert await within(calls[1].read()) == b"more"
        for call in calls:
            call.cancel()
        await until(lambda: all(heard.reasons for heard in served.heard))
        assert not any(isinstance(heard.stream, Stream) and not heard.stream.is_over for heard in served.heard)
