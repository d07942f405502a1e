"""What clients do not read is bounded for all of them together, and a client that reads is not held up by it."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any, cast

import pytest
import uvloop

from services.gateway.transport.outgoing import LITTLE, MUCH, Outgoing


class Writes(asyncio.Protocol):
    """Writes on and on, as long as its socket takes more."""

    def __init__(self, outgoing: Outgoing) -> None:
        self.outgoing = outgoing
        self.writable = True
        self.written = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.outgoing.come(self.transport)

    def pause_writing(self) -> None:
        self.writable = False
        self.outgoing.paused(self.transport)

    def resume_writing(self) -> None:
        self.writable = True

    def write(self, size: int) -> None:
        if self.writable:
            self.written += size
            self.transport.write(bytes(size))


class Reads:
    """The other end of it."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def some(self) -> None:
        """Takes a little of what is written."""
        with suppress(BlockingIOError):
            self._end.recv(LITTLE // 2)

    def close(self) -> None:
        """Is gone."""
        self._end.close()


async def pair(outgoing: Outgoing) -> tuple[Writes, Reads]:
    one, other = socket.socketpair()
    other.setblocking(False)
    _, writes = await asyncio.get_running_loop().create_connection(lambda: Writes(outgoing), sock=one)
    return writes, Reads(other)


async def filled(pairs: list[tuple[Writes, Reads]]) -> int:
    """Writes until no client takes more; gives how far they are behind."""
    while any(writes.writable for writes, _ in pairs):
        for writes, _ in pairs:
            writes.write(LITTLE // 4)
        await asyncio.sleep(0)
    return sum(writes.transport.get_write_buffer_size() for writes, _ in pairs)


async def read(writes: Writes, reads: Reads, size: int) -> None:
    """Until so many bytes more were written, by one who is always behind; then it reads no more."""
    enough = writes.written + size
    async with asyncio.timeout(60):
        while await filled([(writes, reads)]) and writes.written < enough:
            reads.some()
            await asyncio.sleep(0)


async def crowd(budget: int) -> None:
    """Of many clients each reads for a moment only; then one does."""
    outgoing = Outgoing(budget)
    pairs = [await pair(outgoing) for _ in range(40)]
    most = budget + len(pairs) * LITTLE * 1.25
    assert await filled(pairs) <= most
    for writes, reads in pairs:
        await read(writes, reads, MUCH)
    held = await filled(pairs)
    sizes = sorted(writes.transport.get_write_buffer_size() for writes, _ in pairs)
    assert sizes[-1] > 0.9 * MUCH
    assert held <= most
    await read(*pairs[-1], 8 * MUCH)
    for writes, reads in pairs:
        reads.close()
        writes.transport.abort()
        outgoing.forget(writes.transport)
    await asyncio.sleep(0)
    assert not outgoing._behind


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_together_they_hold_no_more_than_the_budget(runner: Any) -> None:
    """Of many that do not read the first may be much behind, the others a little; one that reads gets all of it."""
    runner(crowd(4 * MUCH))


class Socket:
    """A transport as far as it is behind."""

    def __init__(self) -> None:
        self.size = self.limit = 0

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        self.limit = high
        assert low < high

    def get_write_buffer_size(self) -> int:
        return self.size


def test_a_client_that_has_caught_up_makes_place() -> None:
    """Room that a client does not need goes to another, and comes back to it when it is behind again."""
    outgoing, (first, second, third) = Outgoing(2 * MUCH), [Socket() for _ in range(3)]
    for each in (first, second, third):
        outgoing.come(cast("Any", each))
        assert each.limit == LITTLE
    for each in (first, second):
        each.size = LITTLE
        outgoing.paused(cast("Any", each))
        each.size = MUCH
    assert (first.limit, second.limit) == (MUCH, MUCH)
    third.size = LITTLE
    outgoing.paused(cast("Any", third))
    assert third.limit == LITTLE
    second.size = 0
    outgoing.paused(cast("Any", third))
    assert (first.limit, second.limit, third.limit) == (MUCH, LITTLE, MUCH)
    outgoing.forget(cast("Any", first))
    outgoing.paused(cast("Any", second))
    assert second.limit == MUCH
