"""Queues of a session, of one consumer, of an application: Broker-J's exclusivity and lifetime policies, over 0-9-1."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from services.common.errors import Unavailable
from services.gateway.routing import exclusive
from services.rpc.router_pb2 import ChangeReply, ChangeRequest
from tests.contract.gateway.test_lifetimes import CLOSE, gone, is_there, made
from tests.support.amqp_1_0_client import Client
from tests.support.broker_house import BrokerHouse

Basic, Channel, Queue = commands.Basic, commands.Channel, commands.Queue

OWNER, LIFE = "qpid.exclusivity_policy", "qpid.lifetime_policy"


async def test_a_session_ends(broker: BrokerHouse, name: str) -> None:
    """Its queues are gone when its channel's close is answered, and those of other channels are not."""
    client = await broker.connect()
    await client.call(2, Channel.Open(), Channel.OpenOk)
    for channel in (1, 2):
        await client.declare(f"{name}-{channel}", channel=channel, arguments={OWNER: "SESSION"})
    await client.consume(f"{name}-2", channel=2)
    await client.call(2, Channel.Close(200, "", 0, 0), Channel.CloseOk)
    await client.call(2, Channel.Open(), Channel.OpenOk)
    assert await client.refused(2, Queue.Declare(queue=f"{name}-2", passive=True)) == 404
    await client.declare(f"{name}-1", passive=True)
    await client.close()
    observer = await broker.connect(1)
    assert await observer.refused(1, Queue.Declare(queue=f"{name}-1", passive=True)) == 404


async def test_others_of_the_connection(broker: BrokerHouse, name: str) -> None:
    """May not use the queue of a session; whoever has the user's name may use the user's, from any gateway."""
    client, other = await broker.connect(), await broker.connect(1)
    await client.call(2, Channel.Open(), Channel.OpenOk)
    await client.declare(f"{name}-s", arguments={OWNER: "SESSION"})
    assert await client.refused(2, Basic.Get(queue=f"{name}-s")) == 405
    await client.declare(f"{name}-p", arguments={OWNER: "PRINCIPAL"})
    await other.declare(f"{name}-p", arguments={OWNER: "PRINCIPAL"})
    await client.close()
    assert await other.get(f"{name}-p") is None


async def test_one_consumer(broker: BrokerHouse, name: str) -> None:
    """Of a queue of links whoever consumes is alone; after it, another may be."""
    client = await broker.connect()
    await client.call(2, Channel.Open(), Channel.OpenOk)
    await client.declare(name, arguments={OWNER: "LINK"})
    await client.consume(name, "first")
    assert await client.refused(2, Basic.Consume(queue=name, consumer_tag="second")) == 403
    await client.call(1, Basic.Cancel(consumer_tag="first"), Basic.CancelOk)
    await client.consume(name, "third")


async def test_a_channel_that_fails(broker: BrokerHouse, name: str) -> None:
    """Is a session that ends, too; the same number is another one."""
    client = await broker.connect()
    await client.declare(name, arguments={LIFE: "DELETE_ON_SESSION_END"})
    assert await client.refused(1, Queue.Declare(queue=f"{name}-no", passive=True)) == 404
    assert await client.refused(1, Queue.Declare(queue=name, passive=True)) == 404


class Unheard:
    """The router as a gateway asks it, which does not hear of ends of sessions and links until `hears`."""

    def __init__(self, topology: Any) -> None:
        self._topology = topology
        self.hears = False

    async def change(self, request: ChangeRequest) -> ChangeReply:
        if not self.hears and request.WhichOneof("change") in ("close_session", "close_link"):
            raise Unavailable("no router answers")
        reply: ChangeReply = await self._topology.change(request)
        return reply


@pytest.fixture
def unheard(broker: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> Unheard:
    """Of the first gateway."""
    monkeypatch.setattr(exclusive, "_SOON", 0.05)
    queues = broker.gateways[0]._broker.exclusive
    unheard = Unheard(queues._topology)
    monkeypatch.setattr(queues, "_topology", unheard)
    return unheard


async def test_an_end_of_which_the_router_does_not_hear(broker: BrokerHouse, name: str, unheard: Unheard) -> None:
    """Leaves the queue to nobody: the next session with that channel's number is another one. It goes at last."""
    client = await broker.connect()
    await client.call(2, Channel.Open(), Channel.OpenOk)
    await client.declare(name, channel=2, arguments={OWNER: "SESSION"})
    await client.call(2, Channel.Close(200, "", 0, 0), Channel.CloseOk)
    await client.call(2, Channel.Open(), Channel.OpenOk)
    assert await client.refused(2, Basic.Get(queue=name)) == 405
    unheard.hears = True
    await gone(broker, name)
    assert await client.refused(2, Basic.Get(queue=name)) == 404


async def test_an_end_of_a_link_of_which_it_does_not_hear(broker: BrokerHouse, unheard: Unheard) -> None:
    """The same of AMQP 1.0, whose connection and session go on."""
    client = Client()
    name = await made(broker, client, CLOSE)
    await client.detaches()
    assert is_there(broker, name)
    unheard.hears = True
    await gone(broker, name)
    assert await client.receives_from(None, dynamic=True) == ""
    client.abort()


async def test_a_connection_ends_meanwhile(broker: BrokerHouse, name: str, unheard: Unheard) -> None:
    """Its end is heard of, and takes along what its sessions have left."""
    client = await broker.connect()
    await client.declare(name, arguments={OWNER: "SESSION"})
    await client.call(1, Channel.Close(200, "", 0, 0), Channel.CloseOk)
    await client.close()
    await gone(broker, name)
    unheard.hears = True
