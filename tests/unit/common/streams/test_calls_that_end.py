"""Calls end, whatever becomes of those who answer them, and take nothing with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from services.common.http2 import frames
from services.common.http2.settings import OURS as SETTINGS
from services.common.http2.settings import Setting
from services.common.streams.call_server import Served
from services.common.streams.channel import Channel
from services.common.streams.grpc_fields import request
from tests.support.call_ends import PIECE, PIECES, Ends, Servicer, answering, method
from tests.support.http2_transcript import PREFACE, client, grow, settings
from tests.support.stream_ends import opened, until, within

OURS = Ends(client=True, server=True)


class _Cancelled(Servicer):
    """It waits for something that somebody else cancels."""

    async def unary_unary(self, request: bytes, _context: Any) -> bytes:
        waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(waited.cancel)
        await waited
        return request


class _Says(Servicer):
    """It fails with this text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    async def unary_unary(self, _request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.NOT_FOUND, self._text)
        return b""


async def _failure(channel: Channel, name: str = "unary_unary") -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await within(method(channel, name)(b"x"))
    return failure.value


async def test_a_servicer_that_is_cancelled(unix: str) -> None:
    """Its caller hears of it."""
    async with answering(OURS, unix, _Cancelled()) as address, Channel(address) as channel:
        assert (await _failure(channel)).code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("text", "heard"),
    [("no queue '\udcff'", "no queue '?'"), ("ü" * 100_000, "ü" * 2000), ("x\nü%", "x\nü%")],
    ids=["no UTF-8", "long", "any"],
)
async def test_what_a_failure_says(unix: str, text: str, heard: str) -> None:
    """Arrives, as far as it can, and other calls on the connection go on: a name in it may be anything."""
    servicer = _Says(text)
    async with answering(OURS, unix, servicer) as address, Channel(address) as channel:
        waiting = asyncio.ensure_future(_waits(channel))
        await within(servicer.began.wait())
        failure = await _failure(channel)
        assert (failure.code(), failure.details()) == (grpc.StatusCode.NOT_FOUND, heard)
        servicer.go_on.set()
        assert await within(waiting) == b"x"


async def _waits(channel: Channel) -> bytes:
    return bytes(await method(channel, "waits")(b"x", wait_for_ready=True))  # on a busy machine that may take long


async def test_a_call_that_is_awaited_twice(unix: str) -> None:
    """Gives its answer both times, as grpc.aio's does."""
    async with answering(OURS, unix, Servicer()) as address, Channel(address) as channel:
        call = method(channel, "unary_unary")(b"x")
        assert await within(asyncio.gather(_of(call), _of(call))) == [b"x", b"x"]
        assert await within(call) == b"x"


async def _of(call: Any) -> bytes:
    return bytes(await call)


class _GoesOn(Servicer):
    """It wants to say one thing more, though its caller is gone."""

    async def reads(self, _requests: object, context: Any) -> None:
        try:
            for _ in range(PIECES):
                await context.write(PIECE)
        except asyncio.CancelledError:
            await context.write(PIECE)
            self.cancelled.set()


async def test_a_servicer_that_goes_on_after_the_end(unix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for a peer that took nothing, and is gone: nobody would ever tell it."""
    full, pause = asyncio.Event(), Served.pause_writing

    def pause_writing(served: Served) -> None:
        pause(served)
        full.set()

    monkeypatch.setattr(Served, "pause_writing", pause_writing)
    servicer, much = _GoesOn(), (1 << 31) - 1
    async with answering(OURS, unix, servicer):
        _, writer = await opened(unix)
        asked = client().headers(1, request("/test.Calls/reads"))
        writer.write(PREFACE + settings(initial_window_size=much) + grow(0, much - 65_535) + asked)
        await within(full.wait())
        writer.transport.abort()
        await within(servicer.cancelled.wait())


@pytest.fixture
def endpoints(monkeypatch: pytest.MonkeyPatch) -> list[Served]:
    """Connections of servers, which let no stream be open at first."""
    found, made = list[Served](), Served.connection_made

    def connection_made(served: Served, transport: asyncio.BaseTransport) -> None:
        found.append(served)
        made(served, transport)

    monkeypatch.setattr(Served, "connection_made", connection_made)
    monkeypatch.setitem(SETTINGS, Setting.MAX_CONCURRENT_STREAMS, 0)
    return found


async def _answered_after(
    change: Callable[[Served], None], unix: str, endpoints: list[Served], monkeypatch: pytest.MonkeyPatch
) -> bytes:
    """A call that has waited for a stream, once its peer has changed, which lets some be open from then on."""
    async with answering(OURS, unix, Servicer()) as address, Channel(address) as channel:
        waiting = asyncio.ensure_future(_of(method(channel, "unary_unary")(b"x")))
        await until(lambda: channel._end)
        monkeypatch.setitem(SETTINGS, Setting.MAX_CONCURRENT_STREAMS, 100)
        change(endpoints[0])
        return bytes(await within(waiting))


async def test_a_peer_that_takes_calls_later(
    unix: str, endpoints: list[Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for that is sent as soon as it says so."""

    def say(peer: Served) -> None:
        peer._connection._write(frames.settings({Setting.MAX_CONCURRENT_STREAMS: 100}))
        peer.flush()

    assert await _answered_after(say, unix, endpoints, monkeypatch) == b"x"
    assert len(endpoints) == 1


async def test_a_peer_that_leaves_before_it_takes_calls(
    unix: str, endpoints: list[Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for that goes on another connection."""
    assert await _answered_after(Served.close, unix, endpoints, monkeypatch) == b"x"
    assert len(endpoints) == 2
