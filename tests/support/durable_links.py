"""Durable links of AMQP 1.0 from an exchange, by a container that is called `client`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pamqp import commands

from services.common.topology.slots import SlotName
from services.gateway.protocols.amqp_1_0.durable_record import queue_of
from services.gateway.protocols.amqp_1_0.performatives import Attach
from services.gateway.sessions.session import Session
from tests.support.amqp_1_0_playbook import receiving
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until

NEVER: dict[str, Any] = {"durable": 2, "expiry_policy": "never"}


async def publish(broker: BrokerHouse, exchange: str, *bodies: str) -> None:
    """Confirmed."""
    client = await broker.connect()
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for body in bodies:
        client.publish(body.encode(), "a.b", exchange=exchange)
    await client.confirmed(len(bodies))


def link_of(exchange: str) -> str:
    """The name of the link that `receiving` attaches."""
    return f"of {exchange}"


def other_of(exchange: str, source: str = "amq.fanout") -> Attach:
    """The same link, from there."""
    return replace(receiving(source, 1, dict(NEVER)), name=link_of(exchange))


def definition(broker: BrokerHouse, exchange: str) -> Any:
    """Of its queue, if it is there."""
    return broker.topology.by_name.get(SlotName("/", queue_of("client", link_of(exchange))))


def goes_at(monkeypatch: pytest.MonkeyPatch, last: int, go: Callable[[], None]) -> list[Session]:
    """Has a client `go` while that request of it is under way, from 1 on; gives the session of each, as they come."""
    finish, asked = Session.finish, list[Session]()

    async def goes(its: Session, request: Any, work: Any) -> None:
        asked.append(its)
        if len(asked) == last:
            go()
            await until(lambda: its.connection.lost)
        await finish(its, request, work)

    monkeypatch.setattr(Session, "finish", goes)
    return asked
