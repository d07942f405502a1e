"""Broker-J's REST at a stack as users start it: every kind of thing is made, read, changed and deleted."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import Any

import pika
import pytest

from tests.support.ports import free_port
from tests.support.rest import Get, asking
from tests.support.stack import HOST, Stack

_PLACE = "%252F/%252F"


@pytest.fixture
def ask(stack: Stack) -> Get:
    return asking(stack.http_port)


@pytest.mark.parametrize(
    ("path", "made", "change"),
    [
        (f"queue/{_PLACE}/orders", {"maximumQueueDepthMessages": 10, "overflowPolicy": "RING"}, {"description": "new"}),
        (f"exchange/{_PLACE}/shop", {"type": "headers", "durable": False}, {"context": {"team": "shop"}}),
        ("user/internal/anna", {"password": "secret"}, {"tags": ["monitoring"]}),
        ("port/inner", {"port": free_port(), "bindingAddress": HOST}, {"maxOpenConnections": 5}),
        ("virtualhost/tests/tests", {}, {"description": "of tests"}),
        ("group/internal/staff", {}, {"description": "who works here"}),
    ],
    ids=lambda each: each.split("/")[0] if isinstance(each, str) else "",
)
async def test_life(ask: Get, path: str, made: dict[str, object], change: dict[str, object]) -> None:
    """201 and where it is; 200 as it is; 200 as it has become; 200, and 404 from then on."""
    at = f"/api/latest/{path}"
    status, told, headers = await ask(at, "guest:guest", "PUT", made)
    assert (status, headers["Location"]) == (201, at), told
    assert {key: told[key] for key in made if key != "password"} == {
        key: made[key] for key in made if key != "password"
    }
    status, told, _ = await ask(at, "guest:guest", "POST", change)
    assert (status, {key: told[key] for key in change}) == (200, change)
    assert _said((await ask(at))[1]) == _said(told)
    assert (await ask(at, "guest:guest", "POST", {"nonsense": 1}))[0] == 422
    assert (await ask(at, "guest:guest", "DELETE"))[0] == 200
    assert (await ask(at))[0] == (await ask(at, "guest:guest", "DELETE"))[0] == 404


def _said(told: dict[str, object]) -> dict[str, object]:
    """But what gateways say of a port, a moment later."""
    return {key: value for key, value in told.items() if key not in {"boundTo", "trouble", "state"}}


async def test_what_clients_meet(ask: Get, stack: Stack, name: str) -> None:
    """Messages go by an exchange, a binding and a queue that were made over HTTP, and are counted and purged there."""
    queue, exchange = f"/api/latest/queue/{_PLACE}/{name}", f"/api/latest/exchange/{_PLACE}/{name}"
    await ask(queue, "guest:guest", "PUT", {})
    await ask(exchange, "guest:guest", "PUT", {"type": "topic"})
    binding = {"destination": name, "bindingKey": "a.*"}
    assert (await ask(f"{exchange}/bind", "guest:guest", "POST", binding))[:2] == (200, True)
    with closing(pika.BlockingConnection(pika.ConnectionParameters(stack.address.host, stack.address.port))) as client:
        await _publish_and_purge(ask, client.channel(), name, queue)


async def _publish_and_purge(ask: Get, channel: Any, name: str, queue: str) -> None:
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish(name, "a.b", b"m", mandatory=True)
    assert channel.basic_get(name)[2] == b"m"
    for _ in range(100):  # statistics are five seconds old at most
        status, told, _ = await ask(queue)
        if told["statistics"].get("queueDepthMessages") == 3:
            break
        await asyncio.sleep(0.1)
    assert (status, told["statistics"]["unacknowledgedMessages"], told["statistics"]["bindingCount"]) == (200, 1, 1)
    assert (await ask(f"{queue}/clearQueue", "guest:guest", "POST", {}))[:2] == (200, 2)


async def test_described(ask: Get) -> None:
    """OpenAPI knows every category with its attributes, and says what an error is."""
    status, told, _ = await ask("/openapi.json", None)
    paths = told["paths"]
    body = paths["/api/{version}/queue/{path}"]["put"]["requestBody"]["content"]["application/json"]["schema"]
    assert (status, body["properties"]["overflowPolicy"]["enum"][0]) == (200, "NONE")
    assert "errorMessage" in json.dumps(told["components"]["schemas"])
