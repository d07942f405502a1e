"""Producers by REST: exchanges that a channel has published to, and links of AMQP 1.0."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from services.mgmt.tree import recent
from tests.support.amqp_1_0_client import Client
from tests.unit.mgmt.tree.conftest import HOST, Managed


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "OLDEST", 0.0)


async def producers(managed: Managed) -> dict[str, dict[str, Any]]:
    """Of the only connection that publishes."""
    status, told = await managed("GET", f"producer/{HOST}")
    assert status == 200, told
    return {each["name"]: each for each in told}


async def test_of_channels(managed: Managed) -> None:
    """One for each exchange, with what was published there, however mixed."""
    client = await managed.house.connect()
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    assert await producers(managed) == {}
    for exchange in ("amq.topic", "", "amq.topic", "amq.topic"):
        client.publish(b"12345", "k", exchange=exchange)
    await client.confirmed(4)
    found = await producers(managed)
    counted = {name: each["statistics"] for name, each in found.items()}
    assert counted == {
        "amq.topic": {"messagesOut": 3, "bytesOut": 15},
        "amq.default": {"messagesOut": 1, "bytesOut": 5},
    }
    topic = found["amq.topic"]
    assert (topic["destination"], topic["destinationType"], topic["principal"]) == ("amq.topic", "EXCHANGE", "guest")
    [session] = (await managed("GET", f"session/{HOST}?depth=1"))[1]
    assert {each["sessionId"] for each in found.values()} == {session["id"]}
    assert {each["name"] for each in session["producers"]} == found.keys()


async def test_of_links(managed: Managed) -> None:
    """From when they are attached until they end; of a queue, they say so."""
    await managed("PUT", f"queue/{HOST}/q", {})
    client = Client()
    await client.open(managed.house.ports[0], "guest", "guest", "/")
    await client.sends_to("q")
    [link] = (await producers(managed)).values()
    assert (link["destination"], link["destinationType"]) == ("q", "QUEUE")
    assert link["statistics"] == {"messagesOut": 0, "bytesOut": 0}
    await client.sends()
    assert (await producers(managed))[link["name"]]["statistics"]["messagesOut"] == 1
    await client.detaches()
    assert await producers(managed) == {}
    await client.close()
