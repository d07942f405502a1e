"""Calls without a task that is woken for each message: both ends are called with what comes, and write at once."""

from __future__ import annotations

import asyncio
from typing import cast

import grpc
import grpc.aio
import pytest

from services.common.streams.client_call import ClientCall
from tests.support.call_ends import Ends, Servicer, answering, method
from tests.support.stream_ends import until, within

OURS = Ends(True, True)


async def test_each_message_at_once(unix: str) -> None:
    """In order, those that come before a servicer listens too; the end is read when all is said."""
    heard: list[bytes] = []
    async with answering(OURS, unix, Servicer()) as address, OURS.channel(address) as channel:
        call = cast("ClientCall", method(channel, "listens")())
        call.listen(heard.append)
        assert not call.write_now(b"0")  # there is no connection yet
        await call.wait_for_connection()
        said = [b"%d" % number for number in range(100)]
        assert all(call.write_now(each) for each in said)
        await call.done_writing()
        assert not call.write_now(b"too late")
        assert await within(call.read()) is grpc.aio.EOF
        assert heard == [*said, b"all"]
        assert await call.code() is grpc.StatusCode.OK


async def test_what_the_peer_does_not_take(unix: str) -> None:
    """Nothing is written at once while something waits for the peer: it would not be bounded."""
    servicer = Servicer()
    async with answering(OURS, unix, servicer) as address, OURS.channel(address) as channel:
        call = cast("ClientCall", method(channel, "hears_late")())
        await call.wait_for_connection()
        count = 0
        while call.write_now(bytes(1 << 20)):
            count += 1
        assert 0 < count < 100
        servicer.go_on.set()
        await until(lambda: call.write_now(b""))
        await call.done_writing()
        assert await within(_response(call)) == b"%d" % (count + 1)


async def test_a_listener_with_a_fault(unix: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Ends its call, and no other on the same connection."""

    def broken(_message: bytes) -> None:
        raise ZeroDivisionError

    async with answering(OURS, unix, Servicer()) as address, OURS.channel(address) as channel:
        call = cast("ClientCall", method(channel, "listens")())
        call.listen(broken)
        await call.write(b"0")
        with pytest.raises(grpc.aio.AioRpcError):
            await within(call.read())
        assert await within(asyncio.ensure_future(_response(method(channel, "unary_unary")(b"1")))) == b"1"
    assert "a fault of Hopline's" in capsys.readouterr().out


async def _response(call: ClientCall) -> bytes:
    response: bytes = await call
    return response
