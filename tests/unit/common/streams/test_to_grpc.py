"""Our client with a server of grpc.aio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from services.common.streams.client import connect
from tests.support.stream_ends import METHOD, Heard, bodies, echo, grpc_serving, same, until


def many_small() -> list[bytes]:
    """As a busy gateway sends them."""
    return [b"%d" % number for number in range(5000)]


@pytest.mark.parametrize("made", [bodies, many_small], ids=["from none to 20 MiB", "many small ones"])
async def test_messages_go_both_ways(address: str, made: Callable[[], list[bytes]]) -> None:
    """Whole and in order, though written in one turn of the loop."""
    heard, sent = Heard(), made()
    async with grpc_serving(address, echo) as target:
        stream = await connect(target, METHOD, heard)
        for body in sent:
            stream.write(body)
        await until(lambda: len(heard.messages) == len(sent))
        stream.close()
    assert same(heard.messages, sent)


@pytest.mark.parametrize("text", ["plain", "größer als 100 %: 数\n", "%25", ""])
async def test_status_and_message_arrive(address: str, text: str) -> None:
    """With any message, percent-encoded on its way (PROTOCOL-HTTP2.md: Status-Message)."""

    async def refuse(_requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        yield b"first"
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)

    heard = Heard()
    async with grpc_serving(address, refuse) as target:
        stream = await connect(target, METHOD, heard)
        await until(lambda: heard.reasons)
        stream.close()
    assert heard.messages == [b"first"]
    assert heard.reasons == [f"RESOURCE_EXHAUSTED: {text}"]


async def test_a_server_that_ends_in_order(address: str) -> None:
    """Its listener hears that there was no fault, once."""

    async def serve(_requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        yield b"all"

    heard = Heard()
    async with grpc_serving(address, serve) as target:
        stream = await connect(target, METHOD, heard)
        await until(lambda: heard.reasons)
        stream.write(b"lost")
        stream.close()
    assert (heard.messages, heard.reasons) == ([b"all"], [""])


async def test_an_unknown_method(address: str) -> None:
    """Ends the stream with UNIMPLEMENTED."""
    heard = Heard()
    async with grpc_serving(address, echo) as target:
        stream = await connect(target, "/test.Bytes/Nothing", heard)
        await until(lambda: heard.reasons)
        stream.close()
    assert heard.reasons[0].startswith("UNIMPLEMENTED: ")


async def test_a_closed_stream_is_cancelled(address: str) -> None:
    """The server learns of it; our listener is not told, as we asked for it."""
    over = asyncio.Event()

    async def serve(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        try:
            async for request in requests:
                yield request
        finally:
            over.set()

    heard = Heard()
    async with grpc_serving(address, serve) as target:
        stream = await connect(target, METHOD, heard)
        stream.write(b"x")
        await until(lambda: heard.messages)
        stream.close()
        stream.close()
        await asyncio.wait_for(over.wait(), 60)
    assert heard.reasons == []


async def test_a_server_that_goes_away(address: str) -> None:
    """Its listener hears it, once."""
    heard = Heard()
    async with grpc_serving(address, echo) as target:
        stream = await connect(target, METHOD, heard)
        stream.write(b"x")
        await until(lambda: heard.messages)
    await until(lambda: heard.reasons)
    stream.close()
    assert len(heard.reasons) == 1
    assert heard.reasons[0]
