"""An internal fault ends the connection of the client concerned, with the protocol's error, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands
from structlog.testing import capture_logs

from services.common.topology.slots import SlotName
from services.gateway import vocabulary as v
from services.gateway.operations import OPERATIONS, Operation, needs
from services.gateway.protocols.amqp_0_9.engine import AmqpEngine
from services.rpc import queue_pb2 as pb
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse

_TOO_LONG = "k" * 300


async def _poison(broker: BrokerHouse, queue: str) -> None:
    """Puts a message into a queue whose routing key no client can be told: from before such were refused."""
    definition = broker.topology.by_name[SlotName("/", queue)]
    for name in ("queue-1", "queue-2"):
        link = await broker._inner.link(name, origin=5000)
        run = pb.PublishRun(count=1, virtual_host="/", routing_key=_TOO_LONG, queue_ids=[definition.id],
                            format="amqp-0-9", shared_properties=b"\0\0")  # fmt: skip
        batch = pb.PublishBatch(sequence=1, uids=[(5000 << 39) + 1], bodies=[b"poison"], runs=[run], time_ms=1)
        await link.send(publishes=[batch.SerializeToString()])
        await link.until(lambda link=link: link.done())  # type: ignore[misc]


async def _ended(client: AmqpClient) -> commands.Connection.Close:
    close: commands.Connection.Close = await client.expect(commands.Connection.Close)
    client.send(0, commands.Connection.CloseOk())
    await client.until(lambda: client.closed)
    return close


async def _ready(client: AmqpClient, queue: str) -> int:
    count: int = (await client.declare(queue, passive=True)).message_count
    return count


async def _is_served(client: AmqpClient, queue: str) -> None:
    before = len(client.messages())
    client.publish(b"served", queue)
    await client.bodies(before + 1)


async def _others(broker: BrokerHouse, name: str) -> list[tuple[AmqpClient, str]]:
    """Clients of the same gateway that consume from queues of both processes, and those queues."""
    found = []
    for number in range(6):
        client, queue = await broker.connect(), f"{name}-{number}"
        await client.declare(queue)
        await client.consume(queue)
        found.append((client, queue))
    return found


@pytest.mark.parametrize("way", ["consume", "get"])
async def test_a_message_that_cannot_be_written(broker: BrokerHouse, name: str, way: str) -> None:
    """Its consumer's connection ends with 541, the message stays in its queue, and all others are served."""
    victim, owner, others = await broker.connect(), await broker.connect(1), await _others(broker, name)
    await owner.declare(name)
    await _poison(broker, name)
    with capture_logs() as told:
        if way == "consume":
            victim.send(1, commands.Basic.Consume(queue=name, consumer_tag="c"))
        else:
            victim.send(1, commands.Basic.Get(queue=name))
        close = await _ended(victim)
        for client, queue in others:
            await _is_served(client, queue)
    assert close.reply_code == 541
    while await _ready(owner, name) == 0:
        pass
    assert not [each for each in told if each["event"] == "a stream fails"]
    await owner.call(1, commands.Queue.Delete(queue=name), commands.Queue.DeleteOk)


async def test_a_request_that_fails(broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For anything that a handler raises, at once or later, its client gets 541 and the others are served."""

    others = await _others(broker, name)

    async def later(_session: Any, _request: Any) -> None:
        raise ZeroDivisionError("later")

    def at_once(_session: Any, _request: Any) -> None:
        raise ZeroDivisionError("at once")

    for handler in (later, at_once):
        monkeypatch.setitem(OPERATIONS, v.PurgeQueue, Operation(handler, needs.nothing))
        victim = await broker.connect()
        await victim.declare(name)
        with capture_logs() as told:
            victim.send(1, commands.Queue.Purge(queue=name))
            assert (await _ended(victim)).reply_code == 541
        assert [each["do"] for each in told if each["log_level"] == "error"]
    for client, queue in others:
        await _is_served(client, queue)


async def test_a_confirm_that_cannot_be_said(broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher that cannot be told that its messages are safe loses its connection; the messages are safe."""
    victim, others = await broker.connect(channels=7), await _others(broker, name)
    confirm = AmqpEngine.confirm

    def fails(self: AmqpEngine, session: int, *args: Any, **more: Any) -> None:
        if session == 7:
            raise ZeroDivisionError
        confirm(self, session, *args, **more)

    monkeypatch.setattr(AmqpEngine, "confirm", fails)
    await victim.declare(name)
    await victim.call(7, commands.Confirm.Select(), commands.Confirm.SelectOk)
    with capture_logs():
        victim.publish(b"safe", name, channel=7)
        assert (await _ended(victim)).reply_code == 541
    for client, queue in others:
        await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
        await _is_served(client, queue)
        await client.confirmed(1)
    assert await _ready(await broker.connect(), name) == 1


async def test_a_client_that_cannot_be_read(broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of an engine is answered as such, and is that connection's."""
    receive = AmqpEngine.receive

    def fails(self: AmqpEngine, data: bytes) -> Any:
        if name.encode() + b"!" in data:
            raise RecursionError
        return receive(self, data)

    monkeypatch.setattr(AmqpEngine, "receive", fails)
    victim, others = await broker.connect(), await _others(broker, name)
    with capture_logs():
        victim.publish(b"odd", f"{name}!")
        assert (await _ended(victim)).reply_code == 541
    for client, queue in others:
        await _is_served(client, queue)
