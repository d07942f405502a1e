"""Durable links of AMQP 1.0 that their client closes, and is gone before that is answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach, Transfer
from services.gateway.protocols.amqp_1_0.termini import Target
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_1_0_playbook import receiving
from tests.support.broker_house import BrokerHouse
from tests.support.durable_links import NEVER, definition, goes_at, link_of, other_of, publish
from tests.support.programs import until


async def test_closed_by_a_client_that_goes(broker: BrokerHouse, clients: list[Client], exchange: str) -> None:
    """It closes the link, and does not wait for the answer: nothing is kept for it."""
    client, _ = clients
    await client.receives_from(exchange, **NEVER)
    client.closes()
    await until(lambda: definition(broker, exchange) is None)


@pytest.mark.parametrize("source", ["its own", "another", "none"])
async def test_closed_before_it_is_there(
    broker: BrokerHouse, clients: list[Client], exchange: str, source: str
) -> None:
    """By a client that takes it up to end it, and goes: all of that is in one read, and what it had is gone."""
    first, second = clients
    await first.receives_from(exchange, **NEVER)
    first.abort()
    attaches = {
        "its own": replace(receiving(exchange, 0, dict(NEVER)), name=link_of(exchange)),
        "another": other_of(exchange),
        "none": Attach(link_of(exchange), 0, True, source=None, target=Target()),
    }
    second.attaches(attaches[source])
    second.closes()
    await until(lambda: definition(broker, exchange) is None)
    await asyncio.sleep(0.1)
    assert definition(broker, exchange) is None


@pytest.mark.parametrize("last", [1, 2, 3])
async def test_closed_while_it_comes(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """The same, whichever of its requests is under way when it is closed."""
    first, _ = clients
    asked = goes_at(monkeypatch, last, first.closes)
    first.attaches(receiving(exchange, 0, dict(NEVER)))
    await until(lambda: len(asked) >= last and asked[0].closed)
    await until(lambda: definition(broker, exchange) is None)


@pytest.mark.parametrize("begun", [True, False])
async def test_closed_and_attached_anew(
    broker: BrokerHouse, clients: list[Client], exchange: str, *, begun: bool
) -> None:
    """By a client that waits for no answer: what it closes is gone, and the next one of that name is there."""
    client, _ = clients
    if begun:
        await client.receives_from(exchange, **NEVER)
    else:
        client.attaches(receiving(exchange, 0, dict(NEVER)))
    client.ends()
    attach = replace(receiving(exchange, 1, dict(NEVER)), name=link_of(exchange))
    client.attaches(attach)
    await client.next(Detach)
    assert (await client.next(Attach, Detach)).handle == 1
    await publish(broker, exchange, "1")
    client.takes(1)
    await client.next(Transfer)
    client.settles(0)
    await client.detaches()
    assert definition(broker, exchange) is None
