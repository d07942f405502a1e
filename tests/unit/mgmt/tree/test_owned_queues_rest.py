"""Queues that are somebody's, as the tree shows and makes them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from services.common.message.amqp_1_0 import values as v
from services.gateway.protocols.amqp_1_0.performatives import Attach
from services.gateway.protocols.amqp_1_0.termini import Source, Target
from tests.support.amqp_1_0_client import Client
from tests.unit.mgmt.tree.conftest import HOST, Managed

QUEUE = f"queue/{HOST}/q"


@pytest.mark.parametrize(
    ("arguments", "shown", "purged"),
    [
        ({"qpid.exclusivity_policy": "SESSION"}, ("SESSION", "DELETE_ON_SESSION_END"), 409),
        ({"qpid.exclusivity_policy": "PRINCIPAL"}, ("PRINCIPAL", "PERMANENT"), 200),
        ({"qpid.exclusivity_policy": "LINK", "qpid.lifetime_policy": "DELETE_ON_CONNECTION_CLOSE"},
         ("LINK", "DELETE_ON_CONNECTION_CLOSE"), 200),
        ({"qpid.lifetime_policy": "DELETE_ON_NO_LINKS"}, ("NONE", "DELETE_ON_NO_OUTBOUND_LINKS"), 200),
    ],
)  # fmt: skip
async def test_declared(managed: Managed, arguments: dict[str, Any], shown: tuple[str, str], purged: int) -> None:
    """By a client: what is not a connection's, management may empty."""
    client = await managed.house.connect()
    await client.declare("q", durable=True, arguments=arguments)
    status, told = await managed("GET", QUEUE)
    assert (status, told["exclusive"], told["lifetimePolicy"]) == (200, *shown)
    assert (await managed("POST", f"{QUEUE}/clearQueue", {}))[0] == purged


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (0x2B, ("CONNECTION", "DELETE_ON_CREATING_LINK_CLOSE")),
        (0x2C, ("NONE", "DELETE_ON_NO_LINKS")),
        (0x2D, ("NONE", "IN_USE")),
        (0x2E, ("NONE", "IN_USE")),
    ],
)
async def test_made_by_links(managed: Managed, code: int, shown: tuple[str, str]) -> None:
    """Of AMQP 1.0: what their peers asked for."""
    client = Client()
    await client.open(managed.house.ports[0], "guest", "guest", "/")
    node = Source(dynamic=True, dynamic_node_properties={v.Symbol("lifetime-policy"): v.Described(v.ULong(code), [])})
    name = (await client.makes(Attach("l", 0, role=True, source=node, target=Target()))).source.address
    status, told = await managed("GET", f"queue/{HOST}/{quote(name, safe='')}")
    client.abort()
    assert (status, told["exclusive"], told["lifetimePolicy"]) == (200, *shown)


async def test_made_by_a_link_with_arguments(managed: Managed) -> None:
    """Of AMQP 1.0: properties of the node; no queue is made for dead letters of one that goes by itself."""
    client = Client()
    await client.open(managed.house.ports[0], "guest", "guest", "/")
    properties = {v.Symbol("x-qpid-dlq-enabled"): True, v.Symbol("alternateBinding"): '{"destination": "amq.fanout"}'}
    node = Source(dynamic=True, dynamic_node_properties=properties)
    name = (await client.makes(Attach("l", 0, role=True, source=node, target=Target()))).source.address
    told = (await managed("GET", f"queue/{HOST}/{quote(name, safe='')}"))[1]
    client.abort()
    assert told["alternateBinding"] == {"destination": "amq.fanout"}
    assert (await managed("GET", f"queue/{HOST}/{quote(name, safe='')}_DLQ"))[0] == 404


async def test_made(managed: Managed) -> None:
    """For one consumer at a time; for others it takes a client."""
    assert (await managed("PUT", QUEUE, {"exclusive": "LINK"}))[0] == 201
    told = (await managed("GET", QUEUE))[1]
    assert (told["exclusive"], told["lifetimePolicy"]) == ("LINK", "PERMANENT")
    status, told = await managed("PUT", f"queue/{HOST}/p", {"exclusive": "SESSION"})
    assert (status, "only a connected client" in told["errorMessage"]) == (422, True)
