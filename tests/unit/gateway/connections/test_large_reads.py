"""Sockets of clients that send large messages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from services.gateway.connections.connection import Connection
from services.gateway.connections.incoming import Incoming
from services.gateway.connections.large_reads import LargeReads, ReadRoom, is_quick
from services.gateway.connections.rest import Rest
from services.gateway.connections.turns import Turns
from services.gateway.vocabulary import Publish, Request
from tests.support.amqp_playbook import Playbook, content
from tests.support.programs import until
from tests.unit.gateway.connections.test_gone import Listener

_LARGE = content(1, bytes(range(250)) * 256, frame_size=100_000)
_HUGE = content(1, bytes(range(200)) * 5000, frame_size=100_000)
_SMALL = content(1, b"x" * 200)

Run = Callable[[Coroutine[Any, Any, None]], None]
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
both_loops = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


class _Session:
    closed = False

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def handle(self, request: Request) -> None:
        assert isinstance(request, Publish)
        self.bodies += request.bodies

    async def ended(self) -> None:
        """At once."""

    def close(self) -> None:
        """Nothing is left."""


class _Listener(Listener):
    """Its clients have signed in, and opened channel 1."""

    def __init__(self) -> None:
        super().__init__()
        self.read_room = ReadRoom(self.turns, self.incoming)
        self.broker.observer = SimpleNamespace(closed=lambda _: None)
        self.broker.publisher = SimpleNamespace(forget=lambda _: None)
        self.session = _Session()

    def accept(self) -> Connection:
        connection = Connection(self, Playbook().running().engine, "1.1")  # type: ignore[arg-type]
        connection.virtual_host = "/"
        connection.sessions[1] = self.session  # type: ignore[assignment]
        self.made.add(connection)
        return connection

    @property
    def connection(self) -> Connection:
        [connection] = self.made
        return connection


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many octets each of what was lent held."""
    sizes: list[int] = []
    updated = LargeReads.buffer_updated

    def noted(self: LargeReads, count: int) -> None:
        sizes.append(count)
        updated(self, count)

    monkeypatch.setattr(LargeReads, "buffer_updated", noted)
    return sizes


@asynccontextmanager
async def _served() -> AsyncIterator[tuple[Any, Callable[[], Coroutine[Any, Any, _Streams]]]]:
    """What clients connect to, and how they do."""
    listener: Any = _Listener()
    server = await asyncio.get_running_loop().create_server(listener.accept, "127.0.0.1", 0)
    async with server:
        yield listener, lambda: asyncio.open_connection(*server.sockets[0].getsockname())


async def _send(listener: _Listener, writer: asyncio.StreamWriter, message: bytes, count: int) -> None:
    """Returns when all of it was carried out."""
    wanted = len(listener.session.bodies) + count
    writer.write(message * count)
    await until(lambda: len(listener.session.bodies) == wanted)


@both_loops
@pytest.mark.parametrize(("message", "count"), [(_LARGE, 200), (_HUGE, 12)], ids=["large", "huge"])
def test_large_messages_are_read_much_at_a_time(run: Run, reads: list[int], message: bytes, count: int) -> None:
    """All of them come, whatever reads cut; when the client sends a small one again it is read as others are."""

    async def main() -> None:
        async with _served() as (listener, connect):
            _, writer = await connect()
            await _send(listener, writer, message, count)
            assert listener.connection.reads_much
            assert max(reads) > 500_000
            assert len(set(listener.session.bodies)) == 1
            await _send(listener, writer, _SMALL, 1)
            assert not listener.connection.reads_much
            await _send(listener, writer, message, count)
            assert listener.connection.reads_much
            writer.close()
            await until(lambda: listener.gone)
            await until(lambda: not listener.made)

    run(main())


@both_loops
def test_many_small_messages_are_read_much_at_a_time(run: Run, reads: list[int]) -> None:
    """Where the socket has more of them than a usual read takes, until it has fewer."""

    async def main() -> None:
        async with _served() as (listener, connect):
            _, writer = await connect()
            await _send(listener, writer, _SMALL, 100)
            await _send(listener, writer, _SMALL, 40_000)
            assert max(reads) > 500_000
            assert set(listener.session.bodies) == {b"x" * 200}
            await _send(listener, writer, _SMALL, 1)
            assert not listener.connection.reads_much
            writer.close()
            await until(lambda: listener.gone)

    run(main())


@both_loops
def test_many_small_messages_while_others_ask(run: Run, reads: list[int]) -> None:
    """They are read as much at a time as of any other socket."""

    async def main() -> None:
        async with _served() as (listener, connect):
            _, writer = await connect()
            listener.turns.questions.ask("other", asyncio.get_running_loop().time() + 60)  # until then at the least
            await _send(listener, writer, _SMALL, 40_000)
            assert reads
            assert max(reads) <= 256_000
            writer.close()
            await until(lambda: not listener.made)

    run(main())


@both_loops
def test_a_client_that_asks_for_little_again(run: Run) -> None:
    """It is read as others are from its next read on, and keeps large messages of others from long turns."""

    async def main() -> None:
        async with _served() as (listener, connect):
            _, writer = await connect()
            await _send(listener, writer, _LARGE, 100)
            assert listener.connection.reads_much
            before = listener.turns.questions.of_others("")
            await _send(listener, writer, _SMALL, 1)
            assert not listener.connection.reads_much
            assert listener.turns.questions.of_others("") > before
            writer.close()
            await until(lambda: listener.gone)

    run(main())


@both_loops
def test_many_that_send_large_messages(run: Run, reads: list[int]) -> None:
    """Each has what it sent, whatever was lent to others meanwhile, also where it had to wait for its turn."""

    async def main() -> None:
        bodies = [bytes((number,)) * 60_000 for number in range(12)]
        async with _served() as (listener, connect):
            writers = [(await connect())[1] for _ in bodies]
            for body, writer in zip(bodies, writers, strict=True):
                writer.write(content(1, body, frame_size=100_000) * 60)
            await until(lambda: len(listener.session.bodies) == 60 * len(bodies))
            for writer in writers:
                writer.close()
            await until(lambda: not listener.made)
        assert Counter(listener.session.bodies) == dict.fromkeys(bodies, 60)
        assert reads

    run(main())


def test_what_waits_for_its_turn_is_its_own() -> None:
    """Where the turn's budget is spent, what was lent is copied."""
    turns, had = Turns(), list[bytes]()

    def carry_out_all(data: bytes) -> list[Request]:
        had.append(bytes(data))
        return []

    connection: Any = SimpleNamespace(
        lost=False,
        engine=SimpleNamespace(unread=False, effort=0),
        last=SimpleNamespace(read=0.0),
        carry_out_all=carry_out_all,
        hold=lambda _: None,
        release=lambda _: None,
        held_but=lambda _: False,
    )
    connection.rest = Rest(turns)

    async def main() -> None:
        memory = bytearray(b"mine" * 2000)
        turns.spend([], 1 << 30, 0)
        connection.rest.read(connection, memoryview(memory))
        memory[:] = b"else" * 2000
        await until(lambda: had)

    asyncio.run(main())
    assert had == [b"mine" * 2000]


@both_loops
def test_a_client_that_sends_on_when_its_connection_ends(run: Run) -> None:
    """What it sends is dropped, none of it carried out, and it reads what was written to it, and the end."""

    async def main() -> None:
        async with _served() as (listener, connect):
            reader, writer = await connect()
            await _send(listener, writer, _LARGE, 100)
            connection = listener.connection
            assert connection.reads_much
            connection.engine.beat()
            connection.write()
            connection.part()
            writer.write(_LARGE * 100)
            assert await reader.read() == b"\x08\0\0\0\0\0\0\xce"
            await writer.drain()
            writer.close()
            await until(lambda: listener.gone)
            assert len(listener.session.bodies) == 100

    run(main())


@both_loops
def test_a_socket_torn_in_a_body(run: Run) -> None:
    """Nothing of it is left, and nothing is counted as on its way in."""

    async def main() -> None:
        async with _served() as (listener, connect):
            _, writer = await connect()
            await _send(listener, writer, _HUGE, 8)
            writer.write(_HUGE[:-1000])
            await until(lambda: listener.incoming.total > 900_000)
            assert listener.connection.reads_much
            writer.transport.abort()
            await until(lambda: listener.gone)
            await until(lambda: not listener.made)
            assert listener.incoming.total == 0

    run(main())


_MB = 1 << 20


def test_no_more_than_usual() -> None:
    """While others ask, in a turn that is spent, and while what has begun to come takes an eighth of its room."""
    asyncio.run(_lend())


async def _lend() -> None:
    turns, incoming = Turns(), Incoming(1 << 20, 60)
    room = ReadRoom(turns, incoming)
    turns.questions.ask("other", 100.0)
    usual, much = len(room.lend("1.1", 100.5, _MB)), len(room.lend("1.1", 101.5, _MB))
    assert usual < much == len(room.memory)
    turns.spend([], 1 << 30, 0)
    assert len(room.lend("1.1", 101.5, _MB)) == usual
    await until(lambda: not turns.over)
    incoming.total = 128 << 10
    assert len(room.lend("1.1", 101.5, _MB)) == usual


@pytest.mark.parametrize(("size", "much"), [(20_000, _MB), (_MB // 4, _MB), (_MB // 2, 2 * _MB), (1 << 30, 4 * _MB)])
def test_some_messages_at_a_time(size: int, much: int) -> None:
    """Of very large ones a read holds a few, too, as far as there is memory."""
    assert len(ReadRoom(Turns(), Incoming(_MB, 60)).lend("1.1", 10.0, size)) == much


def test_one_memory_for_all() -> None:
    """However many sockets are read much at a time, and none before the first."""
    room = ReadRoom(Turns(), Incoming(1 << 20, 60))
    assert "memory" not in vars(room)
    loop: Any = SimpleNamespace(time=lambda: 10.0)
    one: Any = SimpleNamespace(loop=loop, name="1.1", rest=SimpleNamespace(large=0))
    views = [LargeReads(one, room).get_buffer(-1) for _ in range(3)]
    assert all(view.obj is room.memory.obj for view in views)


@pytest.mark.parametrize(
    ("size", "seconds", "quick"), [(250_000, 0.003, True), (250_000, 0.02, False), (_MB, 0.03, True)]
)
def test_reads_that_take_long(size: int, seconds: float, quick: bool) -> None:
    """Of what takes a turn of 40 ms a megabyte, no more is read than usually: others wait meanwhile."""
    assert is_quick(size, seconds) == quick
