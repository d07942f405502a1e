"""A durable link that two clients of one container attach at once, each from another source."""

from __future__ import annotations

from typing import Any

import pytest

from services.gateway.protocols.amqp_1_0.performatives import Attach, Transfer
from services.gateway.sessions.session import Session
from services.gateway.vocabulary import Consume, ReplaceQueue, Request
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_1_0_playbook import receiving
from tests.support.broker_house import BrokerHouse
from tests.support.durable_links import NEVER, definition, other_of, publish


def _attach_before(monkeypatch: pytest.MonkeyPatch, kind: type[Request], other: Client, exchange: str) -> None:
    """Another client attaches the link, to another source, before the first request of a kind is carried out."""
    finish, others = Session.finish, [other]

    async def slow(its: Session, request: Any, work: Any) -> None:
        if isinstance(request, kind) and others:
            assert (await others.pop().makes(other_of(exchange))).source is not None
        await finish(its, request, work)

    monkeypatch.setattr(Session, "finish", slow)


async def test_whoever_binds_last(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is of one source or of the other: its queue is never bound to both."""
    first, second = clients
    _attach_before(monkeypatch, ReplaceQueue, second, exchange)
    first.attaches(receiving(exchange, 0, dict(NEVER)))
    assert (await first.next(Attach)).source.address == exchange
    await publish(broker, "amq.fanout", "of the other")
    await publish(broker, exchange, "its own")
    first.takes(10)
    await first.next(Transfer)
    assert first.payload.endswith(b"its own")
    first.settles(0)
    await first.detaches()
    assert definition(broker, exchange) is None


async def test_whoever_consumes_last(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose queue is another's by then is told that its link was stolen, and is given nothing that is not for it."""
    first, second = clients
    _attach_before(monkeypatch, Consume, second, exchange)
    assert await first.receives_from(exchange, **NEVER) == "amqp:link:stolen"
    await publish(broker, "amq.fanout", "1")
    second.takes(1)
    await second.next(Transfer)
    second.settles(0)
    await second.detaches()
