"""Limits of users and of virtual hosts, set over RabbitMQ's API, and what clients of a gateway are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pamqp import commands

from services.common.limits import USER, VIRTUAL_HOST, Subject
from tests.support.amqp_client import AmqpClient
from tests.support.programs import until
from tests.unit.mgmt.rabbitmq.conftest import Asked


async def _limit(asked: Asked, path: str, number: int) -> None:
    assert (await asked("PUT", path, {"value": number})) == (204, None)
    await _heard(asked, path, number if number >= 0 else None)


async def _heard(asked: Asked, path: str, number: int | None) -> None:
    kind, name, what = path.split("/")
    subject = Subject(USER if kind == "user-limits" else VIRTUAL_HOST, name.replace("%2F", "/"))
    await asked.house.until_limited(subject, what, number)


async def _refused(asked: Asked, **options: Any) -> tuple[int, str]:
    client = await asked.house.connect(**options)
    [close] = client.of(commands.Connection.Close)
    return close.reply_code, close.reply_text


async def _gone(asked: Asked, client: AmqpClient) -> None:
    connections = asked.house.gateways[0]._listener._connections
    there = len(connections)
    await client.close()
    await until(lambda: len(connections) < there)


@pytest.mark.parametrize(
    ("of", "text"),
    [
        ("user-limits/guest", "connection refused for user 'guest': user connection limit (1) is reached"),
        ("vhost-limits/%2F", "access to vhost '/' refused for user 'guest': connection limit (1) is reached"),
    ],
)
async def test_connections(asked: Asked, of: str, text: str) -> None:
    """Beyond the limit are refused with 530 in RabbitMQ's words, until one is gone, or the limit is another one."""
    path = f"{of}/max-connections"
    await _limit(asked, path, 1)
    first = await asked.house.connect()
    code, said = await _refused(asked)
    assert (code, text in said) == (530, True)
    await _gone(asked, first)
    second = await asked.house.connect()
    await _limit(asked, path, -1)
    assert not (await asked.house.connect()).of(commands.Connection.Close)
    await _limit(asked, path, 0)
    assert (await _refused(asked))[0] == 530
    await second.declare("q")  # open connections stay
    assert (await asked("DELETE", path))[0] == 204
    await _heard(asked, path, None)
    assert not (await asked.house.connect()).of(commands.Connection.Close)


async def test_channels(asked: Asked) -> None:
    """Of all connections of a user: the next one ends its connection, as in RabbitMQ."""
    await _limit(asked, "user-limits/guest/max-channels", 3)
    first, second = await asked.house.connect(channels=2), await asked.house.connect()
    second.send(2, commands.Channel.Open())
    close = await second.expect(commands.Connection.Close)
    assert close.reply_code == 530
    assert "for user 'guest' has reached the maximum allowed user limit of (3)" in close.reply_text
    await _gone(asked, second)
    await first.call(3, commands.Channel.Open(), commands.Channel.OpenOk)


async def test_queues(asked: Asked) -> None:
    """Beyond the limit are refused with 406, over AMQP and HTTP; those that are there may be declared again."""
    await _limit(asked, "vhost-limits/%2F/max-queues", 1)
    client = await asked.house.connect()
    await client.declare("q")
    await client.declare("q")
    assert await client.refused(1, commands.Queue.Declare(queue="other")) == 406
    status, told = await asked("PUT", "queues/%2F/other", {})
    assert (status, "queue limit in vhost '/' (1) is reached" in told["reason"]) == (400, True)
    await client.call(1, commands.Queue.Delete(queue="q"), commands.Queue.DeleteOk)
    await client.declare("other")


async def test_told(asked: Asked) -> None:
    """As they are set, to users who may see them; they are deleted with their user or virtual host."""
    for path in ("vhosts/shop", "permissions/shop/anna", "users/anna"):
        body = {"password": "p", "tags": "management"} if path.startswith("users") else {}
        every = {"configure": ".*", "write": ".*", "read": ".*"}
        assert (await asked("PUT", path, every if path.startswith("perm") else body))[0] == 201
    for path in ("vhost-limits/shop/max-queues", "vhost-limits/%2F/max-queues", "user-limits/anna/max-channels"):
        await _limit(asked, path, 7)
    await _limit(asked, "vhost-limits/shop/max-connections", 9)
    shop = {"vhost": "shop", "value": {"max-connections": 9, "max-queues": 7}}
    assert await asked.get("vhost-limits") == [{"vhost": "/", "value": {"max-queues": 7}}, shop]
    assert await asked.get("vhost-limits", "anna:p") == await asked.get("vhost-limits/shop", "anna:p") == [shop]
    assert (await asked("GET", "user-limits", user="anna:p"))[0] == 401
    assert (await asked("PUT", "user-limits/anna/max-channels", {"value": 9}, "anna:p"))[0] == 401
    assert await asked.get("user-limits/anna") == [{"user": "anna", "value": {"max-channels": 7}}]
    assert await asked.get("user-limits/bert") == []
    for path in ("vhosts/shop", "users/anna"):
        await asked("DELETE", path)
    async with asyncio.timeout(10):
        while len(left := await asked.get("vhost-limits")) > 1 or await asked.get("user-limits"):
            await asyncio.sleep(0.02)
    assert [each["vhost"] for each in left] == ["/"]


async def test_what_cannot_be(asked: Asked) -> None:
    """Is told, and not kept."""
    for path, body, text in (
        ("user-limits/guest/max-queues", {"value": 1}, "there is no limit 'max-queues'"),
        ("vhost-limits/gone/max-queues", {"value": 1}, "vhost 'gone' not found"),
        ("user-limits/guest/max-channels", {"value": "many"}, "value"),
        ("user-limits/guest/max-channels", {"value": -2}, "value"),
        ("user-limits/guest/max-channels", {}, "value"),
        (f"user-limits/{'u' * 300}/max-channels", {"value": 1}, "at most 255"),
    ):
        status, told = await asked("PUT", path, body)
        assert (status, text in told["reason"]) == (400, True), told
    assert (await asked("DELETE", "user-limits/guest/max-channels"))[0] == 404
    assert await asked.get("user-limits") == await asked.get("vhost-limits") == []


async def test_definitions(asked: Asked) -> None:
    """Have them as RabbitMQ does, of all and of one virtual host, and they are taken again."""
    await _limit(asked, "vhost-limits/%2F/max-connections", 1000)
    await _limit(asked, "user-limits/guest/max-channels", 100)
    told = await asked.get("definitions")
    limits = {"component": "vhost-limits", "name": "limits", "value": {"max-connections": 1000}}
    assert told["parameters"] == [{**limits, "vhost": "/"}]
    assert [each["limits"] for each in told["users"]] == [{"max-channels": 100}]
    assert (await asked.get("definitions/%2F"))["parameters"] == [limits]
    for path in ("vhost-limits/%2F/max-connections", "user-limits/guest/max-channels"):
        assert (await asked("DELETE", path))[0] == 204
    assert (await asked("POST", "definitions", told))[0] == 204
    assert await asked.get("definitions") == told
