"""Every operation of AMQP 1.0, as every role, at a whole broker: what is allowed, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import pytest
import pytest_asyncio

from services.common.access.records import TopicPermission
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.values import Described, ULong
from services.gateway.protocols.amqp_1_0.performatives import Close, Detach
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected
from tests.support.access_house import HERE, OF_LINKS, ROLES, AccessHouse, access_house, heard_of, may
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_1_0_playbook import data, receiving
from tests.support.broker_house import BrokerHouse

UNAUTHORIZED = "amqp:unauthorized-access"
OWN = "amq.gen-"
SUBSCRIBED = "qpidsub_/client_/news"


class Operation(NamedTuple):
    """What a client attaches, and what RabbitMQ's table asks of it."""

    attaches: Callable[[Client], Awaitable[str]]
    needs: Mapping[str, list[str]]


async def subscribes_anew(client: Client) -> str:
    """By one link, whose former queue is replaced; gives the condition for which it is refused, else nothing."""
    for handle, key in enumerate("ab", start=100):
        attach = receiving(f"/exchanges/x/{key}", handle, {"durable": 2, "expiry_policy": "never"})
        attached = await client.makes(replace(attach, name="news"))
        detach = await (client.next(Detach) if attached.source is None else client.detaches(closed=key == "b"))
        if detach.error:
            return str(detach.error.condition)
    return ""


OPERATIONS: Mapping[str, Operation] = {
    "to a queue": Operation(lambda client: client.sends_to("/queues/q"), {"write": ["amq.default"]}),
    "to an exchange": Operation(lambda client: client.sends_to("/exchanges/x"), {"write": ["x"]}),
    "to an exchange, with a key": Operation(lambda client: client.sends_to("/exchanges/x/k"), {"write": ["x"]}),
    "to what is called so": Operation(lambda client: client.sends_to("q"), {"write": ["amq.default"]}),
    "to what is an exchange": Operation(lambda client: client.sends_to("own-x"), {"write": ["own-x"]}),
    "to the management node": Operation(lambda client: client.sends_to("$management"), {"write": ["amq.default"]}),
    "of the management node": Operation(lambda client: client.receives_from("$management"), {}),
    "of a queue": Operation(lambda client: client.receives_from("/queues/q"), {"read": ["q"]}),
    "of an exchange": Operation(
        lambda client: client.receives_from("/exchanges/x"),
        {"configure": [OWN], "write": [OWN], "read": [OWN, "x"]},
    ),
    "of an exchange, durably, and then of another": Operation(
        subscribes_anew,
        {"configure": [SUBSCRIBED], "write": [SUBSCRIBED], "read": [SUBSCRIBED, "x"]},
    ),
    "of a queue of its own": Operation(
        lambda client: client.receives_from(None, dynamic=True), {"configure": [OWN], "read": [OWN]}
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house(broker: BrokerHouse) -> AsyncIterator[AccessHouse]:
    """With a user for each role."""
    async with access_house(broker) as made:
        yield made


async def connected(house: AccessHouse, role: str) -> Client:
    client = Client()
    await client.open(house.broker.ports[0], role, "secret", HERE)
    return client


@pytest.mark.parametrize("role", ROLES)
async def test_every_link(house: AccessHouse, role: str) -> None:
    """A link ends with amqp:unauthorized-access where the role has no permission, and only there."""
    client = await connected(house, role)
    for name, operation in OPERATIONS.items():
        condition = await operation.attaches(client)
        assert condition == ("" if may(role, operation.needs) else UNAUTHORIZED), name
    await client.close()


async def test_every_request_is_tried(house: AccessHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that links alone ask for are asked about by those operations."""
    heard = heard_of(monkeypatch)
    client = await connected(house, "all")
    for operation in OPERATIONS.values():
        await operation.attaches(client)
    await client.close()
    assert heard >= OF_LINKS


async def test_what_is_not_there(house: AccessHouse) -> None:
    """Is not found by users who may use it, and is not revealed to others."""
    for role, condition in (("all", "amqp:not-found"), ("nothing", UNAUTHORIZED)):
        client = await connected(house, role)
        assert await client.receives_from("/queues/none") == condition
        await client.close()


async def test_a_virtual_host_without_permission(house: AccessHouse) -> None:
    """Is not opened, and the connection ends."""
    client = Client()
    answer = await client.open(house.broker.ports[0], "outside", "secret", HERE)
    assert isinstance(answer, Close)
    assert str(answer.error.condition) == "amqp:not-allowed"
    assert answer.error.description == f"access to vhost '{HERE}' refused for user 'outside'"
    client.abort()


async def test_each_message_by_its_key(house: AccessHouse) -> None:
    """Of a link whose messages have keys of their own those are rejected that are not permitted, and no others."""
    topic = TopicPermission(user="all", virtual_host=HERE, exchange="amq.topic", write="^eu")
    await house.grants.put_topic_permission(topic)
    client = await connected(house, "all")
    assert await client.sends_to("/exchanges/amq.topic") == ""
    async with asyncio.timeout(5):
        while not isinstance(await client.sends(about("us")), Rejected):
            await asyncio.sleep(0.01)
    rejected = await client.sends(about("us"))
    assert str(rejected.error.condition) == UNAUTHORIZED
    assert rejected.error.description == (
        f"write access to topic 'us' in exchange 'amq.topic' in vhost '{HERE}' refused for user 'all'"
    )
    state = await client.sends(about("eu"))
    assert not isinstance(state, Rejected) or str(state.error.condition) != UNAUTHORIZED
    await house.grants.clear_topic_permission("all", HERE, "amq.topic")
    await client.close()


async def test_a_permission_that_is_taken_back(house: AccessHouse) -> None:
    """Counts for messages of a link that is attached already."""
    client = await connected(house, "publishes")
    assert await client.sends_to("/queues/q") == ""
    assert isinstance(await client.sends(), Accepted)
    await house.grants.clear_permission("publishes", HERE)
    async with asyncio.timeout(5):
        while not isinstance(await client.sends(), Rejected):
            await asyncio.sleep(0.01)
    await client.close()


def about(subject: str) -> bytes:
    """A message with that subject (part 3, section 3.2.4)."""
    return encode(Described(ULong(0x73), [None, None, None, subject])) + data()
