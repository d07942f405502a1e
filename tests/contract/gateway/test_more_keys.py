"""Messages with further routing keys in their headers (CC, BCC), inside: what other messages must not pay for."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from services.common.message import field_table
from services.gateway import vocabulary as v
from services.gateway.operations import publish
from services.gateway.routing.routes import RouteCache
from tests.contract.gateway.test_settling import ready
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse

_MANY = 20


async def test_other_messages_go_as_before(broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without such a header nothing is decoded, and equal messages are of one kind: one route is looked up for all."""
    client = await _ready(broker, name, 1)
    looked_up = _looked_up(monkeypatch)
    monkeypatch.setattr(publish, "_publish_each", None)
    monkeypatch.setattr(field_table, "entries", None)
    for _ in range(_MANY):
        client.publish(b"x", f"{name}-0", headers={"text": "CC and BCC", "cc": ["other"]})
    await client.confirmed(_MANY)
    assert await ready(client, f"{name}-0") == _MANY
    assert len(looked_up) <= 2


async def test_equal_messages_with_keys_stay_together(
    broker: BrokerHouse, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with equal headers are looked at once and go together; the others part, and all are in order."""
    client = await _ready(broker, name, 3)
    looked_up = _looked_up(monkeypatch)
    for number in range(_MANY):
        copies = [f"{name}-{1 if number < _MANY // 2 else 2}"]
        client.publish(b"%d" % number, f"{name}-0", headers={"BCC": copies})
    await client.confirmed(_MANY)
    assert list(dict.fromkeys(looked_up)) == [(f"{name}-1",), (f"{name}-2",)]
    assert len(looked_up) <= 4  # a read may have ended anywhere
    bodies = [b"%d" % number for number in range(_MANY)]
    for queue, expected in enumerate((bodies, bodies[: _MANY // 2], bodies[_MANY // 2 :])):
        await client.consume(f"{name}-{queue}", f"c{queue}")
        await client.until(lambda queue=queue, all_=expected: _of(client, f"c{queue}") == all_)  # type: ignore[misc]


async def test_a_fault_comes_in_its_turn(broker: BrokerHouse, name: str) -> None:
    """What was published before a message whose keys cannot be read is in the queues, what comes after it is not."""
    client, other = await _ready(broker, name, 2), await broker.connect(1)
    for headers in ({"CC": [f"{name}-1"]}, {"CC": f"{name}-1"}, {"CC": [f"{name}-1"]}):
        client.publish(b"x", f"{name}-0", headers=headers)
    closed = await client.expect(commands.Channel.Close)
    assert closed.reply_code == 406
    assert [await ready(other, f"{name}-{number}") for number in range(2)] == [1, 1]


async def test_immediate(broker: BrokerHouse, name: str) -> None:
    """It comes back when none of its queues has a consumer that is ready, and stays where one has."""
    client = await _ready(broker, name, 2)
    client.publish(b"nobody", f"{name}-0", immediate=True, headers={"CC": [f"{name}-1"]})
    await client.until(lambda: client.messages(commands.Basic.Return))
    await client.consume(f"{name}-1")
    client.publish(b"one", f"{name}-0", immediate=True, headers={"CC": [f"{name}-1"]})
    assert await client.bodies(1) == [b"one"]
    await client.confirmed(2)
    assert await ready(client, f"{name}-0") == 0
    assert len(client.messages(commands.Basic.Return)) == 1


async def _ready(broker: BrokerHouse, name: str, queues: int) -> AmqpClient:
    client = await broker.connect()
    for number in range(queues):
        await client.declare(f"{name}-{number}")
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    return client


def _looked_up(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Further keys of each kind of messages whose route is looked up from now on."""
    looked_up: list[tuple[str, ...]] = []
    find = RouteCache.find

    def look(cache: RouteCache, host: str, request: v.Publish) -> Any:
        looked_up.extend({kind.more_keys: None for kind in request.kinds})
        return find(cache, host, request)

    monkeypatch.setattr(RouteCache, "find", look)
    return looked_up


def _of(client: AmqpClient, tag: str) -> list[bytes]:
    return [message.body for message in client.messages() if message.method.consumer_tag == tag]
