"""Connections of a channel: when calls go on another one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import grpc
import grpc.aio
import pytest

from services.common.errors import ResourceError
from services.common.grpc_errors import from_rpc
from services.common.http2.errors import ErrorCode
from services.common.http2.events import Headers
from services.common.http2.frames import LARGEST_STREAM
from services.common.streams import call, call_server, channel_end, client_call
from services.common.streams import channel as module
from services.common.streams.address import Address
from services.common.streams.call_server import Served
from services.common.streams.channel import Channel
from services.common.streams.race import first_of
from tests.support.call_ends import Ends, Servicer, answering, method
from tests.support.http2_transcript import settings
from tests.support.ports import free_port
from tests.support.stream_ends import until, within

OURS = Ends(client=True, server=True)


async def test_numbers_that_are_used_up(unix: str) -> None:
    """A connection has two thousand million calls at most (RFC 9113 section 5.1.1): the next ones are on a new one."""
    servicer = Servicer()
    async with answering(OURS, unix, servicer) as address, Channel(address) as channel:
        waiting = asyncio.ensure_future(_result(channel, "waits", b"x"))
        await within(servicer.began.wait())
        former = channel._end
        assert former
        former._connection._last_stream = LARGEST_STREAM - 2
        for number in range(3):
            assert await within(_result(channel, "unary_unary", b"%d" % number)) == b"%d" % number
        assert channel._end is not former
        servicer.go_on.set()
        assert await within(waiting) == b"x"
        await until(lambda: former.lost)


async def test_a_call_that_was_not_looked_at(unix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """REFUSED_STREAM says so (section 8.7): it is made again."""
    looks, refused = Served.headers, list[int]()

    def headers(served: Served, headers: Headers) -> None:
        if refused:
            looks(served, headers)
        else:
            refused.append(headers.stream)
            served._connection.reset(headers.stream, ErrorCode.REFUSED_STREAM)

    monkeypatch.setattr(Served, "headers", headers)
    async with answering(OURS, unix, Servicer()) as address, Channel(address) as channel:
        assert await within(_result(channel, "unary_unary", b"x")) == b"x"
    assert refused == [1]


async def test_a_message_that_is_too_large(unix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends its call, and no other, before it is sent."""
    monkeypatch.setattr(client_call, "LARGEST_MESSAGE", 1000)
    async with answering(OURS, unix, Servicer()) as address, Channel(address) as channel:
        many = method(channel, "reads")()
        await many.write(bytes(1000))
        assert await within(many.read()) == bytes(1000)
        for call in (many.write(bytes(1001)), _result(channel, "unary_unary", bytes(1001))):
            with pytest.raises(grpc.aio.AioRpcError, match="1001 octets") as failure:
                await within(call)
            assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await within(_result(channel, "unary_unary", b"x")) == b"x"


async def test_an_answer_that_is_too_large(unix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is not sent: its call fails, and says which it was and how large."""
    monkeypatch.setattr(call, "LARGEST_MESSAGE", 1000)
    async with answering(OURS, unix, Servicer()) as address, Channel(address) as channel:
        assert await within(_result(channel, "unary_unary", bytes(1000))) == bytes(1000)
        for name in ("unary_unary", "unary_stream"):
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await within(_all(method(channel, name)(bytes(1001))))
            assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert failure.value.details() == f"an answer of 1001 octets to /test.Calls/{name}; 1000 are sent at most"
        assert isinstance(from_rpc(failure.value), ResourceError)
        assert await within(_result(channel, "unary_unary", b"x")) == b"x"


async def _all(call: Any) -> None:
    if hasattr(call, "__aiter__") and not call.method.path.endswith("unary_unary"):
        async for _ in call:
            pass
    else:
        await call


@pytest.mark.parametrize("is_ours", [True, False], ids=["our server", "grpc.aio's"])
async def test_an_answer_that_is_not_taken(unix: str, monkeypatch: pytest.MonkeyPatch, *, is_ours: bool) -> None:
    """The same where the service has sent it."""
    monkeypatch.setattr(channel_end, "LARGEST_MESSAGE", 1000)
    ends = Ends(client=True, server=is_ours)
    async with answering(ends, unix, Servicer()) as address, Channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await within(_result(channel, "unary_unary", bytes(2000)))
        assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "the answer to /test.Calls/unary_unary: a message of 2000 octets" in (failure.value.details() or "")
        assert await within(_result(channel, "unary_unary", b"x")) == b"x"


async def test_a_request_that_is_not_taken(unix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client hears that it was too much, not that somebody has cancelled the call."""
    monkeypatch.setattr(call_server, "LARGEST_MESSAGE", 1000)
    async with answering(OURS, unix, Servicer()) as address:
        for client in (OURS, Ends(client=False, server=True)):
            async with client.channel(address) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as failure:
                    await within(method(channel, "unary_unary")(bytes(2000), wait_for_ready=True))
                assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("address", ["nonsense", f"{'a' * 70}.example:7000", "a..b:7000", "unix:"])
async def test_what_is_no_address(address: str) -> None:
    """A call fails with the reason, and does not wait for ever."""
    async with Channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await within(method(channel, "unary_unary")(b"x", timeout=20))
    assert failure.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_an_address_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several the next one is tried, and so it is where nobody listens."""
    monkeypatch.setattr(module, "_NEXT_SECONDS", 0.05)
    serves = f"127.0.0.1:{free_port()}"
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts for it
        several = f"ipv4:127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{free_port()},{serves}"
        async with answering(OURS, serves, Servicer()), Channel(several) as channel:
            assert await within(_result(channel, "unary_unary", b"x")) == b"x"


async def test_a_machine_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is dialled anew soon: a kernel of ours would knock ever more rarely."""
    dialled, connect = list[Address](), Address.connect

    async def hang(address: Address, *_: object) -> None:
        dialled.append(address)
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "_DIAL_SECONDS", 0.01)
    monkeypatch.setattr(Address, "connect", hang)
    serves = f"127.0.0.1:{free_port()}"
    async with Channel(serves) as channel:
        waiting = asyncio.ensure_future(_result(channel, "unary_unary", b"x"))
        await until(lambda: len(dialled) > 2)
        monkeypatch.setattr(module, "_DIAL_SECONDS", 60.0)
        monkeypatch.setattr(Address, "connect", connect)
        async with answering(OURS, serves, Servicer()):
            assert await within(waiting) == b"x"


async def test_first_of_several() -> None:
    """One that succeeds counts, however many failed; what another one gave as well is dropped."""
    dropped: list[str] = []

    async def gives(what: str, after: float = 0) -> str:
        await asyncio.sleep(after)
        return what

    async def fails(after: float = 0) -> str:
        await asyncio.sleep(after)
        raise OSError("no")

    assert await first_of([fails, lambda: gives("a", 0.01), lambda: gives("b", 9)], 0.001, dropped.append) == "a"
    assert await first_of([lambda: gives("slow", 9), fails, lambda: gives("b")], 0.001, dropped.append) == "b"
    for ways in ([], [fails], [fails, lambda: fails(0.01)]):
        with pytest.raises(OSError, match="no"):
            await first_of(ways, 0.001, dropped.append)
    assert dropped == []


async def _result(channel: Channel, name: str, request: bytes) -> bytes:
    return bytes(await method(channel, name)(request, wait_for_ready=True))


async def test_a_peer_that_answers_and_leaves_at_once(unix: str) -> None:
    """A call fails soon, and one that waits is made when a server stays: the connection that is gone is not kept."""
    path = unix.removeprefix("unix:")

    async def leave(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(settings())
        writer.close()

    async with Channel(unix) as channel:
        async with await asyncio.start_unix_server(leave, path):
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await within(method(channel, "unary_unary")(b"x", timeout=20))
            assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
            waiting = asyncio.ensure_future(_result(channel, "unary_unary", b"y"))
            await asyncio.sleep(0.3)
        async with answering(OURS, unix, Servicer()):
            assert await within(waiting) == b"y"


async def test_a_call_that_others_wait_for(unix: str) -> None:
    """However many wait for what one more says: those that find a connection full get another one."""
    servicer = Servicer()
    async with answering(OURS, unix, servicer) as address, Channel(address) as channel:
        waiting = [asyncio.ensure_future(_result(channel, "waits", b"x")) for _ in range(250)]
        await within(servicer.began.wait())
        assert await within(_result(channel, "unary_unary", b"go on")) == b"go on"
        servicer.go_on.set()
        assert await within(asyncio.gather(*waiting)) == [b"x"] * 250
        await until(lambda: not channel._leaving)


async def test_an_answer_larger_than_the_socket_takes(unix: str) -> None:
    """Is written to its end by a server that stops, in its last seconds."""
    servicer, body = Servicer(), bytes(20 << 20)
    async with Channel(unix) as channel:
        async with answering(OURS, unix, servicer, grace=20):
            waiting = asyncio.ensure_future(_result(channel, "waits", body))
            await within(servicer.began.wait())
            asyncio.get_running_loop().call_later(0.2, servicer.go_on.set)
        assert len(await within(waiting)) == len(body)


async def test_requests_that_cannot_be_said(unix: str) -> None:
    """An iterator that fails ends its call."""

    async def requests() -> AsyncIterator[bytes]:
        yield b"x"
        raise ZeroDivisionError

    async with answering(OURS, unix, Servicer()) as address, Channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="ZeroDivisionError"):
            await within(method(channel, "stream_unary")(requests()))


async def test_a_successor_at_the_same_address(unix: str) -> None:
    """Listens while the former server ends what is under way, and keeps its name."""
    former, servicer = Servicer(), Servicer()
    async with Channel(unix) as channel, AsyncExitStack() as first:
        await first.enter_async_context(answering(OURS, unix, former, grace=0.5))
        waiting = asyncio.ensure_future(_result(channel, "waits", b"x"))
        await within(former.began.wait())
        stopping = asyncio.create_task(first.aclose())
        await asyncio.sleep(0.1)
        async with answering(OURS, unix, servicer):
            await stopping
            assert await within(_result(channel, "unary_unary", b"y")) == b"y"
    await asyncio.wait([waiting])


async def test_a_peer_that_lets_nobody_call(unix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SETTINGS_MAX_CONCURRENT_STREAMS may be 0 for a moment (section 6.5.2): it is not asked again without a pause."""
    came, paused = list[int](), list[int]()
    enough = asyncio.Event()

    async def pause() -> None:
        paused.append(len(came))
        await asyncio.sleep(0)

    async def leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(len(paused))
        writer.write(settings(max_concurrent_streams=0))
        await until(lambda: channel._end is not None)
        if len(came) > 5:
            enough.set()
        writer.close()

    monkeypatch.setattr(module, "_pause", pause)
    server = await asyncio.start_unix_server(leave, unix.removeprefix("unix:"))
    async with server, Channel(unix) as channel:
        call = method(channel, "unary_unary")(b"x")
        await within(enough.wait())
        call.cancel()
    assert came == list(range(len(came)))  # as many pauses as there were connections before
