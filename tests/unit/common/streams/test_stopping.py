"""How a server stops."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from pathlib import Path

import grpc
import pytest

from services.common.runtime import CannotStart
from services.common.streams.call_server import Served as CallServed
from services.common.streams.client import CannotConnect, connect
from tests.support.http2_transcript import GOAWAY, read
from tests.support.stream_ends import METHOD, Heard, Served, grpc_call, serving, until, within

FOREVER = 3600.0


def _is_socket(address: str) -> bool:
    return Path(address.removeprefix("unix:")).is_socket()


async def _started(address: str) -> Served:
    served = Served(address)
    await served.server.listen()
    await served.server.ready()
    return served


async def test_streams_end_after_the_grace(address: str) -> None:
    """Both sides of each are told, once; until then messages come through."""
    served, heard = await _started(address), Heard()
    stream = await connect(served.address, METHOD, heard)
    async with grpc_call(served.address) as call:
        await call.write(b"x")
        assert await within(call.read()) == b"x"
        stopping = asyncio.create_task(served.server.stop(0.1))
        await asyncio.sleep(0)
        stream.write(b"y")
        await until(lambda: heard.messages)
        await within(stopping)
        assert await within(call.code()) == grpc.StatusCode.UNAVAILABLE
        await until(lambda: heard.reasons)
    stream.close()
    assert len(heard.reasons) == 1
    assert [one.reasons for one in served.heard] == [["the service stops"]] * 2


async def test_a_peer_without_a_stream_is_not_awaited(address: str) -> None:
    """Connections without one are closed at once, those with one when it has ended, however it does."""
    served = await _started(address)
    async with grpc.aio.insecure_channel(served.address) as channel:
        await within(channel.channel_ready())
        heard = [Heard() for _ in range(3)]
        streams = [await connect(served.address, METHOD, each) for each in heard]
        await until(lambda: len(served.heard) == 3)
        stopping = asyncio.create_task(served.server.stop(FOREVER))
        await until(lambda: len(served.server._endpoints) == 3)
        streams[0].close()
        served.heard[1].stream.end([("grpc-status", "0")])
        served.heard[2].stream.reset()
        await within(stopping)
    assert heard[1].reasons == [""]
    assert heard[2].reasons == ["the peer ended the stream (CANCEL)"]
    for stream in streams:
        stream.close()


async def test_new_streams_are_refused(address: str) -> None:
    """While those under way go on, also on a connection that one of those has."""
    served = await _started(address)
    target = served.address
    async with grpc.aio.insecure_channel(target) as channel:
        first = channel.stream_stream(METHOD)()
        await first.write(b"x")
        assert await within(first.read()) == b"x"
        stopping = asyncio.create_task(served.server.stop(FOREVER))
        await asyncio.sleep(0)
        with pytest.raises(CannotConnect):
            await connect(target, METHOD, Heard())
        second = channel.stream_stream(METHOD)()
        assert await within(second.code()) == grpc.StatusCode.UNAVAILABLE
        await first.write(b"y")
        assert await within(first.read()) == b"y"
        await first.done_writing()
        assert await within(first.code()) == grpc.StatusCode.OK
        await within(stopping)
    assert len(served.heard) == 1


async def test_the_socket_is_removed(unix: str) -> None:
    """So that no client connects to a stopped server; a server that never listened has no socket."""
    served = await _started(unix)
    assert _is_socket(unix)
    await served.server.stop(0)
    assert not _is_socket(unix)
    await Served(unix).server.stop(0)


async def test_an_address_can_be_used_again(unix: str) -> None:
    """At once."""
    for _ in range(3):
        served, heard = await _started(unix), Heard()
        stream = await connect(unix, METHOD, heard)
        stream.write(b"x")
        await until(lambda heard=heard: heard.messages)
        await served.server.stop(0)
        stream.close()


async def test_a_connection_that_was_accepted_just_before(unix: str) -> None:
    """It is told to go elsewhere, and closed: calls on it would find a service that has stopped."""
    served = await _started(unix)
    await served.server.stop(0)
    loop, (ours, theirs) = asyncio.get_running_loop(), socket.socketpair()
    await loop.connect_accepted_socket(partial(CallServed, served.server), ours)
    reader, writer = await asyncio.open_unix_connection(sock=theirs)
    assert GOAWAY in {frame.kind for frame in read(await within(reader.read()))}
    writer.close()
    await until(lambda: not served.server._endpoints)


async def test_an_address_that_another_process_serves(unix: str) -> None:
    """Whoever comes second is refused, and the first serves on: the event loop by itself would give its name away."""
    async with serving(unix) as first, grpc_call(first.address) as call:
        second = Served(unix)
        with pytest.raises(CannotStart, match="another process does"):
            await second.server.listen()
        await second.server.stop(0)
        await call.write(b"x")
        assert await within(call.read()) == b"x"
        async with grpc_call(first.address) as another:
            await another.write(b"y")
            assert await within(another.read()) == b"y"
    async with serving(unix) as later, grpc_call(later.address) as call:
        await call.write(b"z")
        assert await within(call.read()) == b"z"
