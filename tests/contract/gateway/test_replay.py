"""Consumers that want only what came lately: Broker-J's replay period."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pamqp import commands

from services.common.message.amqp_1_0.values import Described, Symbol, ULong
from services.gateway.protocols.amqp_1_0.performatives import Transfer
from tests.support.amqp_1_0_client import Client
from tests.support.broker_house import BrokerHouse

PERIOD = "x-qpid-replay-period"


@pytest.mark.parametrize("said", [1, "1"])
async def test_what_came_lately(broker: BrokerHouse, name: str, said: object) -> None:
    """Of a queue whose consumers browse: what came in the second before, and what comes."""
    client = await broker.connect()
    await client.declare(name, arguments={"ensureNondestructiveConsumers": True})
    client.publish(b"old", name)
    await asyncio.sleep(1.5)
    client.publish(b"new", name)
    await client.consume(name, arguments={PERIOD: said}, no_ack=True)
    client.publish(b"next", name)
    assert await client.bodies(2) == [b"new", b"next"]


@pytest.mark.parametrize("filters", [{"n": {PERIOD: ["0"]}}, json.dumps({"n": {PERIOD: [0]}})])
async def test_a_queue_that_has_it_so(broker: BrokerHouse, name: str, filters: Any) -> None:
    """So it is for all its consumers, whatever they say: these get what comes from now on."""
    client = await broker.connect()
    await client.declare(name, arguments={"defaultFilters": filters})
    client.publish(b"old", name)
    await client.consume(name, arguments={PERIOD: 60}, no_ack=True)
    client.publish(b"new", name)
    assert await client.bodies(1) == [b"new"]
    assert (await client.declare(name, passive=True)).message_count == 1


@pytest.mark.parametrize("said", [-1, "soon", True, [1], 1 << 40])
async def test_what_is_no_period(broker: BrokerHouse, name: str, said: object) -> None:
    """Closes the channel with 406, which names the argument."""
    client = await broker.connect()
    await client.declare(name)
    assert await client.refused(1, commands.Basic.Consume(queue=name, arguments={PERIOD: said})) == 406
    assert PERIOD in client.of(commands.Channel.Close)[-1].reply_text


async def test_a_link(broker: BrokerHouse, name: str) -> None:
    """As a filter of a source (AMQP 1.0, part 3, 3.5.8); what is no period is refused."""
    declaring, client = await broker.connect(), Client()
    await declaring.declare(name)
    declaring.publish(b"old", name)
    await declaring.declare(name, passive=True)
    await client.open(broker.ports[0], "guest", "guest", "/")
    later = {Symbol("lately"): Described(Symbol(PERIOD), ULong(0))}
    assert await client.receives_from(f"/queues/{name}", filter=later) == ""
    client.takes(9)
    declaring.publish(b"new", name)
    await client.next(Transfer)
    assert (await declaring.declare(name, passive=True)).message_count == 1
    never = {Symbol(PERIOD): "never"}
    assert await client.receives_from(f"/queues/{name}", filter=never) == "amqp:invalid-field"
    await client.close()
