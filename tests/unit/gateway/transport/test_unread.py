"""Answers that a client does not read are bounded, and so is the time for which they are kept."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from services.gateway.transport.unread import Unread

MIB = 1 << 20


class Client:
    """As a connection and its transport: the bytes that wait, whether it is read, whether it is closed."""

    def __init__(self, waiting: int) -> None:
        self.waiting = waiting
        self.loop = asyncio.get_running_loop()
        self.name, self.peer = "7.1", "192.0.2.1:5000"
        self.read = True
        self.closed = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def hold(self, _reason: object) -> None:
        self.read = False

    def release(self, _reason: object) -> None:
        self.read = True

    def cut_off(self) -> None:
        self.closed.set()


def unread(client: Client, patience: float = 60) -> Unread:
    return Unread(cast("Any", client), cast("Any", client), patience)


async def test_a_client_that_goes_on_asking_is_read_no_further() -> None:
    """Deliveries alone hold no requests up; more and more answers do, until the socket takes them."""
    client = Client(20 * MIB)
    its = unread(client)
    its.read()
    client.waiting += 100_000
    its.read()
    assert client.read
    client.waiting += MIB
    its.read()
    assert not client.read
    its.stop()
    assert client.read


async def test_a_client_that_reads_no_answers_is_closed() -> None:
    """When nothing was taken for the time that is given."""
    client = Client(2 * MIB)
    its = unread(client, 0.02)
    client.waiting += MIB
    its.read()
    await asyncio.wait_for(client.closed.wait(), 10)


async def test_a_busy_client_is_not_closed() -> None:
    """A consumer that has more deliveries than it reads, and asks for nothing, may take its time."""
    client = Client(20 * MIB)
    its = unread(client, 0.02)
    await asyncio.sleep(0.2)
    assert not client.closed.is_set()
    its.stop()


@pytest.mark.parametrize("stops", [True, False])
async def test_a_slow_reader_is_not_closed(stops: bool) -> None:
    """A byte now and then is enough, and of course all."""
    client = Client(2 * MIB)
    its = unread(client, 0.1)
    client.waiting += MIB
    its.read()
    if stops:
        its.stop()
    for _ in range(30):
        await asyncio.sleep(0.01)
        client.waiting -= 0 if stops else 1
    assert not client.closed.is_set()
    its.stop()
