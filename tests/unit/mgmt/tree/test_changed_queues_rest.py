"""Attributes of a queue that are changed by REST: it heeds them with the messages that it has."""

from __future__ import annotations

import asyncio
from typing import Any

from pamqp import commands

from services.mgmt.tree import recent
from tests.unit.mgmt.tree.conftest import HOST, Managed

QUEUE = f"queue/{HOST}/q"


async def depth(managed: Managed, wanted: int) -> None:
    async with asyncio.timeout(15):
        while (await managed("GET", f"{QUEUE}/getStatistics"))[1].get("queueDepthMessages") != wanted:
            await asyncio.sleep(recent.OLDEST / 10)


async def test_limits_and_times(managed: Managed) -> None:
    """What is too much goes; the next answer tells all of it; its clients declare it as ever."""
    client = await managed.house.connect()
    await client.declare("q", durable=True, arguments={"x-message-ttl": 60_000})
    for _ in range(5):
        client.publish(b"m", "q")
    wanted = {"maximumQueueDepthMessages": 2, "overflowPolicy": "RING", "maximumDeliveryAttempts": 3}
    status, told = await managed("PUT", QUEUE, wanted)
    assert (status, wanted.items() <= told.items(), told["maximumMessageTtl"]) == (200, True, 60_000)
    assert told["arguments"]["x-delivery-limit"] == 2
    await depth(managed, 2)
    await client.declare("q", durable=True, arguments={"x-message-ttl": 60_000})
    told = (await managed("POST", QUEUE, {"maximumQueueDepthMessages": None, "maximumMessageTtl": 0}))[1]
    assert (told["maximumQueueDepthMessages"], told["maximumMessageTtl"], told["overflowPolicy"]) == (-1, 0, "RING")
    assert (await managed("GET", QUEUE))[1]["arguments"] == {"x-overflow": "ring", "x-delivery-limit": 2}


async def test_a_limit_alone(managed: Managed) -> None:
    """Leaves the policy what it is; where there is none, it holds nobody up."""
    await managed("PUT", QUEUE, {"arguments": {"x-max-length": 5, "x-overflow": "reject-publish"}})
    told = (await managed("PUT", QUEUE, {"maximumQueueDepthMessages": 6}))[1]
    assert (told["overflowPolicy"], told["arguments"]["x-overflow"]) == ("REJECT", "reject-publish")
    await managed("PUT", f"queue/{HOST}/p", {})
    assert (await managed("PUT", f"queue/{HOST}/p", {"maximumQueueDepthMessages": 6}))[1]["overflowPolicy"] == "NONE"


async def test_where_dead_letters_go(managed: Managed) -> None:
    """To what is there, by who may publish there; {} and null take it away."""
    await managed("PUT", QUEUE, {})
    status, told = await managed("PUT", QUEUE, {"alternateBinding": {"destination": "nothing"}})
    assert (status, "there is no 'nothing'" in told["errorMessage"]) == (422, True)
    for none in ({}, None):
        told = (await managed("PUT", QUEUE, {"alternateBinding": {"destination": "amq.fanout"}}))[1]
        assert told["arguments"] == {"x-dead-letter-exchange": "amq.fanout", "expiryPolicy": "DELETE"}
        assert (await managed("PUT", QUEUE, {"alternateBinding": none}))[1]["arguments"] == {"expiryPolicy": "DELETE"}
    await _desk(managed)
    for wanted, answer in (({"maximumQueueDepthMessages": 1}, 200), ({"alternateBinding": {"destination": "q"}}, 403)):
        assert (await managed("PUT", QUEUE, wanted, user="desk:desk"))[0] == answer


async def test_what_expires(managed: Managed) -> None:
    """It does not go to the alternate, as in Broker-J, unless that is said: when the queue is made, or of one there."""
    alternate = {"alternateBinding": {"destination": "amq.fanout"}}
    told = (await managed("PUT", QUEUE, alternate))[1]
    assert (told["expiryPolicy"], told["arguments"]["expiryPolicy"]) == ("DELETE", "DELETE")
    for wanted, expiry in (
        ({"expiryPolicy": "ROUTE_TO_ALTERNATE"}, "ROUTE_TO_ALTERNATE"),
        (alternate, "ROUTE_TO_ALTERNATE"),
        ({"expiryPolicy": "DELETE"}, "DELETE"),
    ):
        assert (await managed("PUT", QUEUE, wanted))[1]["expiryPolicy"] == expiry
    assert (await managed("PUT", QUEUE, {"expiryPolicy": "SOMETIMES"}))[0] == 422
    told = (await managed("PUT", f"queue/{HOST}/p", {"arguments": {"x-dead-letter-exchange": "amq.fanout"}}))[1]
    assert told["expiryPolicy"] == "ROUTE_TO_ALTERNATE"
    for wanted in ({"alternateBinding": {}}, alternate):
        assert (await managed("PUT", f"queue/{HOST}/p", wanted))[1]["expiryPolicy"] == "ROUTE_TO_ALTERNATE"


async def test_messages_that_expire(managed: Managed) -> None:
    """Go to the alternate, or nowhere, by the policy that there is, whatever becomes of the alternate in between."""
    client = await managed.house.connect()
    await client.declare("dead")
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    none, alternate = {"alternateBinding": {}}, {"alternateBinding": {"destination": "dead"}}
    routes = {"expiryPolicy": "ROUTE_TO_ALTERNATE"}
    steps: tuple[tuple[bool, list[dict[str, Any]]], ...] = (
        (False, [alternate | {"expiryPolicy": None}]),
        (True, [routes]),
        (False, [{"expiryPolicy": None}]),
        (True, [none | routes, alternate]),
        (True, [none, alternate]),
        (False, [{"expiryPolicy": "DELETE"}]),
        (False, [none, alternate]),
        (True, [routes]),
    )
    for number, (_, changes) in enumerate(steps, 1):
        for wanted in changes:
            assert (await managed("PUT", QUEUE, wanted))[0] in {200, 201}
        client.publish(str(number).encode(), "q", expiration="1")
        await client.confirmed(number)
        async with asyncio.timeout(15):
            while (await client.declare("q", passive=True)).message_count:
                await asyncio.sleep(0.01)
    await client.consume("dead", no_ack=True)
    gone = [str(number).encode() for number, (goes, _) in enumerate(steps, 1) if goes]
    assert await client.bodies(len(gone)) == gone


async def test_a_dead_letter_queue_that_is_made(managed: Managed) -> None:
    """By the argument of Broker-J's clients: it is shown as alternate; one that is said besides is a contradiction."""
    status, told = await managed("PUT", QUEUE, {"arguments": {"x-qpid-dlq-enabled": True}})
    assert (status, told["alternateBinding"]) == (201, {"destination": "q_DLQ"})
    assert (await managed("GET", f"{QUEUE}_DLQ"))[1]["durable"] is True
    another = {"alternateBinding": {"destination": "amq.fanout"}, "arguments": {"x-qpid-dlq-enabled": True}}
    status, told = await managed("PUT", f"queue/{HOST}/p", another)
    assert (status, "x-qpid-dlq-enabled" in told["errorMessage"]) == (409, True)
    for name, answer in (("q", 422), ("q_DLQ", 200)):
        assert (await managed("PUT", QUEUE, {"alternateBinding": {"destination": name}}))[0] == answer


async def _desk(managed: Managed) -> None:
    """Manages, and may publish nowhere."""
    await managed("PUT", "user/internal/desk", {"password": "desk", "tags": ["administrator"]})


async def test_what_is_fixed_or_wrong(managed: Managed) -> None:
    """Is told, and nothing is changed; over RabbitMQ's API a queue is as declared, with what was changed beside."""
    await managed("PUT", QUEUE, {"maximumMessageTtl": 5})
    refused: dict[str, Any] = {
        "minimumMessageTtl": (9, "no more than x-message-ttl"),
        "maximumQueueDepthBytes": (-7, "-7"),
        "exclusive": ("CONNECTION", "fixed when it is created"),
        "messageGroupType": ("STANDARD", "fixed when it is created"),
    }
    for name, (value, why) in refused.items():
        status, told = await managed("PUT", QUEUE, {name: value})
        assert (status // 100, why in told["errorMessage"]) == (4, True), told
    await managed("PUT", QUEUE, {"maximumMessageTtl": 6})
    told = (await managed.ask("/api/queues/%2F/q", "guest:guest"))[1]
    assert (told["arguments"], told["changed_arguments"]) == ({"x-message-ttl": 5}, {"x-message-ttl": 6})
