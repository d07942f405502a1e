"""Calls of every kind, between our ends and grpc.aio's: both behave alike, so that releases can serve together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from services.common.http2.connection import Http2Connection
from tests.support.call_ends import KINDS, PIECE, PIECES, SAME_WINDOW, Ends, Servicer, answering, method
from tests.support.ports import free_port
from tests.support.stream_ends import until, within

SIZES = [0, 1, 100_000, 20 << 20]
PAIRS = {"ours": Ends(True, True), "our client": Ends(True, False), "our server": Ends(False, True)}


@pytest.fixture(params=PAIRS.values(), ids=PAIRS.keys())
def ends(request: pytest.FixtureRequest) -> Ends:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["unix", "tcp"])
def where(request: pytest.FixtureRequest, unix: str) -> str:
    """Where the server listens, known beforehand."""
    return unix if request.param == "unix" else f"127.0.0.1:{free_port()}"


@pytest.mark.parametrize("kind", KINDS)
async def test_kinds(ends: Ends, where: str, kind: str) -> None:
    """Requests and answers arrive whole and in order, whatever their size."""

    async def requests() -> AsyncIterator[bytes]:
        for size in SIZES:
            yield bytes(size)

    async with answering(ends, where, Servicer()) as address, ends.channel(address) as channel:
        called = method(channel, kind)
        sizes = SIZES if kind.startswith("unary") else [sum(SIZES)]
        asked = [bytes(size) for size in SIZES] if kind.startswith("unary") else [requests()]
        for request, size in zip(asked, sizes, strict=True):
            call = called(request, timeout=60)
            got = [await call] if kind.endswith("unary") else [each async for each in call]
            expected = {"unary_stream": 3 * size}.get(kind, size)
            assert sum(map(len, got)) == expected


async def test_one_request_and_one_answer_are_a_system_call_each(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Header fields, message and end travel together: whoever gets them is woken once."""
    writes: list[int] = []
    take = Http2Connection.data_to_send

    def counted(connection: Http2Connection) -> list[bytes | memoryview]:
        taken = take(connection)
        writes.extend([sum(map(len, taken))] if taken else [])
        return taken

    async with answering(PAIRS["ours"], where, Servicer()) as address, PAIRS["ours"].channel(address) as channel:
        called = method(channel, "unary_unary")
        await called(b"")  # and settings, once for the connection
        monkeypatch.setattr(Http2Connection, "data_to_send", counted)
        assert await called(b"four") == b"four"
        assert len(writes) == 2
        writes.clear()
        with pytest.raises(grpc.aio.AioRpcError):
            await method(channel, "aborts")(b"")
        assert len(writes) == 2


async def test_answers_of_a_turn_are_one_system_call(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """News to who watches, and an answer to who asked for that: a client of both is woken once."""
    writes: list[object] = []
    write = Http2Connection.data_to_send

    def counted(connection: Http2Connection) -> list[bytes | memoryview]:
        taken = write(connection)
        writes.extend([connection] if taken else [])
        return taken

    servicer = Servicer()
    async with answering(PAIRS["ours"], where, servicer) as address, PAIRS["ours"].channel(address) as channel:
        calls = [asyncio.ensure_future(method(channel, "waits")(b"%d" % number)) for number in range(3)]
        await servicer.began.wait()
        await asyncio.sleep(0.1)
        monkeypatch.setattr(Http2Connection, "data_to_send", counted)
        servicer.go_on.set()
        assert await asyncio.gather(*calls) == [b"0", b"1", b"2"]
        assert len(writes) == 1


async def test_reading_and_writing_by_hand(ends: Ends, where: str) -> None:
    """As KeepAlive does: an answer for each request; the end of the client's is the end."""
    async with answering(ends, where, Servicer()) as address, ends.channel(address) as channel:
        call = method(channel, "reads")()
        for number in range(5):
            await call.write(b"%d" % number)
            assert await within(call.read()) == b"%d" % number
        await call.done_writing()
        assert await within(call.read()) is grpc.aio.EOF
        assert await within(call.code()) is grpc.StatusCode.OK


async def test_metadata_and_status(ends: Ends, where: str) -> None:
    """What the client says beside the request; what the servicer says beside a status."""
    servicer = Servicer()
    async with answering(ends, where, servicer) as address, ends.channel(address) as channel:
        await method(channel, "unary_unary")(b"", metadata=(("traceparent", "00-1"),))
        assert ("traceparent", "00-1") in [tuple(each) for each in servicer.said]
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await method(channel, "aborts")(b"")
        assert failure.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert failure.value.details() == "größer als 100 %"
        assert ("k", "v") in [tuple(each) for each in failure.value.trailing_metadata()]
        nothing = channel.unary_unary("/test.Calls/nothing")
        wrong = ((method(channel, "breaks"), grpc.StatusCode.UNKNOWN), (nothing, grpc.StatusCode.UNIMPLEMENTED))
        for called, code in wrong:
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await called(b"")
            assert failure.value.code() is code


@pytest.mark.parametrize("how", ["deadline", "cancel", "task", "close"])
async def test_given_up(ends: Ends, where: str, how: str) -> None:
    """The servicer is cancelled, however the client gives a call up."""
    servicer = Servicer()
    async with answering(ends, where, servicer) as address:
        channel = ends.channel(address)
        call = method(channel, "waits")(b"", timeout=1.5 if how == "deadline" else None)
        waiting = asyncio.ensure_future(_result(call))
        await within(servicer.began.wait())
        if how == "cancel":
            call.cancel()
        elif how == "task":
            waiting.cancel()
        elif how == "close":
            await channel.close()
        await within(servicer.cancelled.wait())
        await asyncio.wait([waiting])
        if how == "deadline":
            failure = waiting.exception()
            assert isinstance(failure, grpc.aio.AioRpcError)
            assert failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        else:
            assert waiting.cancelled()
        await channel.close()


async def _result(call: grpc.aio.UnaryUnaryCall[bytes, bytes]) -> bytes:
    return await call


async def test_answers_that_nobody_reads(ends: Ends, where: str) -> None:
    """The servicer waits, other calls of the channel go on, and all arrives once it is read."""
    servicer = Servicer()
    async with answering(ends, where, servicer) as address, ends.channel(address) as channel:
        call = method(channel, "says_much")(b"")
        assert await within(call.read()) == PIECE
        wrote = -1
        while wrote < servicer.wrote:
            wrote = servicer.wrote
            for _ in range(20):
                assert await within(method(channel, "unary_unary")(b"x")) == b"x"
            await asyncio.sleep(0.1)
        assert servicer.wrote < PIECES
        count = 1
        while await within(call.read()) is not grpc.aio.EOF:
            count += 1
        assert count == PIECES


async def test_requests_that_nobody_reads(ends: Ends, where: str) -> None:
    """The client waits, other calls of the channel go on, and all arrives once it is read."""
    servicer = Servicer()
    async with answering(ends, where, servicer, options=SAME_WINDOW) as address, ends.channel(address) as channel:
        wrote, requests = 0, method(channel, "hears_late")()

        async def write() -> None:
            nonlocal wrote
            for _ in range(PIECES):
                await requests.write(PIECE)
                wrote += 1
            await requests.done_writing()

        writing = asyncio.create_task(write())
        await within(servicer.began.wait())
        before = -1
        while before < wrote:
            before = wrote
            for _ in range(20):
                assert await within(method(channel, "unary_unary")(b"x")) == b"x"
            await asyncio.sleep(0.1)
        assert wrote < PIECES // 2
        servicer.go_on.set()
        await within(writing)
        assert await within(requests) == b"%d" % PIECES


@pytest.mark.parametrize("ends", [PAIRS["ours"], PAIRS["our client"]], ids=["ours", "our client"])
async def test_an_iterator_that_is_left(where: str, ends: Ends) -> None:
    """Ends the call of our client: the servicer does not say the rest to nobody."""
    servicer = Servicer()
    async with answering(ends, where, servicer) as address, ends.channel(address) as channel:
        async for each in method(channel, "says_much")(b""):
            assert each == PIECE
            break
        await within(servicer.cancelled.wait())
        assert servicer.wrote < PIECES


async def test_more_calls_than_streams(ends: Ends, where: str) -> None:
    """A server takes so many at a time; the others have their turn."""
    async with answering(ends, where, Servicer()) as address, ends.channel(address) as channel:
        called = method(channel, "unary_unary")
        answers = await within(asyncio.gather(*(_result(called(b"%d" % number)) for number in range(1000))))
        assert answers == [b"%d" % number for number in range(1000)]


async def test_no_server(ends: Ends, where: str) -> None:
    """A call fails at once; one that waits is made when there is one, and so is the next after that one has gone."""
    async with ends.channel(where) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await method(channel, "unary_unary")(b"", timeout=10)
        assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
        for _ in range(2):
            waiting = asyncio.ensure_future(_result(method(channel, "unary_unary")(b"x", wait_for_ready=True)))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            async with answering(ends, where, Servicer()):
                assert await within(waiting) == b"x"
                assert await method(channel, "unary_unary")(b"y") == b"y"
            await until(lambda: channel.get_state() is not grpc.ChannelConnectivity.READY)


async def test_a_server_that_stops(ends: Ends, where: str) -> None:
    """What is under way is answered in its last seconds; what comes then waits for the next server."""
    servicer = Servicer()
    async with ends.channel(where) as channel:
        async with answering(ends, where, servicer, grace=10):
            waiting = asyncio.ensure_future(_result(method(channel, "waits")(b"x")))
            await within(servicer.began.wait())
            asyncio.get_running_loop().call_later(0.3, servicer.go_on.set)
        assert await within(waiting) == b"x"
        later = asyncio.ensure_future(_result(method(channel, "unary_unary")(b"y", wait_for_ready=True)))
        await asyncio.sleep(0.1)
        async with answering(ends, where, Servicer()):
            assert await within(later) == b"y"


async def test_a_server_that_ends_calls(ends: Ends, where: str) -> None:
    """Stopped without patience: callers hear that it is away."""
    servicer = Servicer()
    async with ends.channel(where) as channel:
        async with answering(ends, where, servicer):
            waiting = asyncio.ensure_future(_result(method(channel, "waits")(b"x")))
            await within(servicer.began.wait())
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await within(waiting)
        assert failure.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        await within(servicer.cancelled.wait())
