"""Something that ends the connection stands behind requests, in the same read: they are answered first.

So are those of other channels; and no request keeps the client waiting for long.
"""

from __future__ import annotations

import asyncio

import pytest
from pamqp import commands

from services.gateway import vocabulary as v
from services.gateway.connections import farewell
from services.gateway.connections.connection import Connection
from services.gateway.operations import OPERATIONS, Operation, needs
from tests.contract.gateway.test_settling import ready
from tests.support.amqp_playbook import content, written
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until

_NO_TABLE = (
    written(1, commands.Basic.Publish())
    + b"\2\0\1\0\0\0\x16\0\x3c\0\0\0\0\0\0\0\0\0\1\x20\0\0\0\0\4\1k?\0\xce"
    + written(1, b"x")
)
_FAULTS = pytest.mark.parametrize(
    ("fault", "code"), [(_NO_TABLE, 502), (b"\x09\0\1\0\0\0\0\xce", 501)], ids=["no table", "no frame"]
)


def _connections(broker: BrokerHouse) -> list[Connection]:
    return [each for gateway in broker.gateways for each in gateway._listener.connections]


@_FAULTS
async def test_messages_that_were_taken(broker: BrokerHouse, name: str, fault: bytes, code: int) -> None:
    """basic.get without acknowledgement, on two channels: each message that left the queue came."""
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name)
    await client.call(2, commands.Channel.Open(), commands.Channel.OpenOk)
    for number in range(5):
        other.publish(b"%d" % number, name)
    while await ready(other, name) < 5:
        pass
    gets = [written(channel, commands.Basic.Get(queue=name, no_ack=True)) for channel in (1, 2, 1)]
    client.writer.write(b"".join(gets) + fault)
    assert (await client.expect(commands.Connection.Close)).reply_code == code
    assert {message.body for message in client.messages(commands.Basic.GetOk)} == {b"0", b"1", b"2"}
    assert await ready(other, name) == 2


@_FAULTS
async def test_a_transaction_that_was_committed(broker: BrokerHouse, name: str, fault: bytes, code: int) -> None:
    """commit-ok comes, and what was committed is there once."""
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name)
    await client.call(1, commands.Tx.Select(), commands.Tx.SelectOk)
    client.writer.write(content(1, b"a", routing_key=name) * 3 + written(1, commands.Tx.Commit()) + fault)
    assert (await client.expect(commands.Connection.Close)).reply_code == code
    assert client.of(commands.Tx.CommitOk)
    assert await ready(other, name) == 3


@_FAULTS
async def test_messages_for_no_queue(broker: BrokerHouse, name: str, fault: bytes, code: int) -> None:
    """Each mandatory one is returned; a queue that was declared between them is there, and its client knows."""
    client = await broker.connect()
    nowhere = content(1, b"n", routing_key=f"nowhere of {name}", mandatory=True)
    client.writer.write(nowhere * 2 + written(1, commands.Queue.Declare(queue=name)) + nowhere + fault)
    assert (await client.expect(commands.Connection.Close)).reply_code == code
    assert len(client.messages(commands.Basic.Return)) == 3
    assert client.of(commands.Queue.DeclareOk)


async def test_exclusive_queues_are_gone(broker: BrokerHouse, name: str) -> None:
    """Whoever hears of the end may declare them on another connection."""
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name, exclusive=True)
    client.writer.write(_NO_TABLE)
    await client.expect(commands.Connection.Close)
    await other.declare(name, exclusive=True)


@_FAULTS
@pytest.mark.parametrize("farewell_comes", [True, False])
async def test_the_socket_ends(broker: BrokerHouse, fault: bytes, code: int, *, farewell_comes: bool) -> None:
    """When the client has answered, or after a while; and without its answer, where it cannot be understood."""
    client = await broker.connect()
    client.writer.write(fault)
    assert (await client.expect(commands.Connection.Close)).reply_code == code
    if farewell_comes:
        client.send(0, commands.Connection.CloseOk())
    async with asyncio.timeout(10):
        while not client.closed:
            await asyncio.sleep(0.01)


async def test_a_request_that_is_not_done(broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue process does not answer: after a while the client is told what was wrong all the same."""
    monkeypatch.setattr(farewell, "_PATIENCE", 0.2)
    client = await broker.connect()
    await client.declare(name)
    go_on = asyncio.Event()
    monkeypatch.setitem(OPERATIONS, v.Get, Operation(lambda *_: go_on.wait(), needs.nothing))
    client.writer.write(written(1, commands.Basic.Get(queue=name)) + _NO_TABLE)
    try:
        assert (await client.expect(commands.Connection.Close)).reply_code == 502
    finally:
        go_on.set()


async def test_the_broker_ends_it_while_a_request_is_not_done(
    broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is told why, and has the time to answer, also where its request takes longer than is waited for."""
    monkeypatch.setattr(farewell, "_PATIENCE", 0.2)
    client = await broker.connect()
    await client.declare(name)
    go_on = asyncio.Event()
    monkeypatch.setitem(OPERATIONS, v.Get, Operation(lambda *_: go_on.wait(), needs.nothing))
    client.send(1, commands.Basic.Get(queue=name))
    await until(lambda: any(session._busy for each in _connections(broker) for session in each.sessions.values()))
    for each in _connections(broker):
        if each.sessions:
            each.shut_down("enough")
    try:
        async with asyncio.timeout(5):
            close = await client.expect(commands.Connection.Close)
    finally:
        go_on.set()
    assert (close.reply_code, close.reply_text) == (320, "CONNECTION_FORCED - enough")
