"""A real RabbitMQ moves here: by one command, from its management, with users whose hashes it made itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pika
import pytest

from benchmarks.brokers.rabbitmq import RabbitMQ
from tests.support.hopline_command import HoplineCommand
from tests.support.ports import free_port
from tests.support.rest import Get, asking
from tests.support.stack import HOST, Stack

_EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
_SECONDS = 60


@pytest.fixture
async def rabbit(tmp_path: Path) -> AsyncIterator[tuple[Get, int]]:
    """Its management, and the port of it."""
    port = free_port()
    (tmp_path / "rabbitmq.conf").write_text(f"management.tcp.port = {port}\nmanagement.tcp.ip = {HOST}\n")
    broker = RabbitMQ(plugins=("rabbitmq_management", "rabbitmq_shovel"))
    assert broker.missing() is None
    await asyncio.to_thread(broker.start, tmp_path)
    ask = asking(port)
    for _ in range(_SECONDS):
        try:
            await ask("/api/whoami")
            break
        except OSError:
            await asyncio.sleep(1)
    yield ask, port
    await asyncio.to_thread(broker.stop)


async def _fill(ask: Get) -> None:
    shovel = {"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"}
    made: list[tuple[str, str, Any]] = [
        ("PUT", "vhosts/shop", {"description": "of the shop", "tags": "a,b"}),
        ("PUT", "users/anna", {"password": "secret", "tags": "monitoring"}),
        ("PUT", "permissions/shop/anna", _EVERYTHING),
        ("PUT", "topic-permissions/shop/anna", {"exchange": "orders", "write": "^eu", "read": ".*"}),
        ("PUT", "exchanges/shop/orders", {"type": "topic"}),
        ("PUT", "queues/shop/orders", {"arguments": {"x-max-length": 100, "x-dead-letter-exchange": "amq.fanout"}}),
        ("PUT", "queues/shop/safe", {"durable": True, "arguments": {"x-queue-type": "quorum"}}),
        ("PUT", "queues/shop/log", {"durable": True, "arguments": {"x-queue-type": "stream"}}),
        ("POST", "bindings/shop/e/orders/q/orders", {"routing_key": "eu.#", "arguments": {"weight": 3}}),
        ("PUT", "policies/shop/ttl", {"pattern": ".*", "definition": {"message-ttl": 60000}, "apply-to": "queues"}),
        ("PUT", "parameters/shovel/shop/move", {"value": shovel}),
        ("PUT", "vhost-limits/shop/max-queues", {"value": 100}),
    ]
    for method, path, body in made:
        status, told, _ = await ask(f"/api/{path}", "guest:guest", method, body)
        assert status in (201, 204), (path, told)


async def test_moving(rabbit: tuple[Get, int], stack: Stack, tmp_path: Path) -> None:
    """What can be is here and works, and the rest is listed; what is here is as RabbitMQ tells of it, and goes back."""
    ask, port = rabbit
    await _fill(ask)
    password = tmp_path / "password"
    password.write_text("guest\n")
    command = HoplineCommand(stack)
    arguments = ("definitions", "import", f"http://guest@{HOST}:{port}", "--password-file", str(password), "--json")
    done = await asyncio.to_thread(command.run, *arguments)
    assert done.returncode == 3, done.stderr
    left_out = {(each["kind"], each["name"]) for each in json.loads(done.stdout)["left_out"]}
    lost = {("queues", "log"), ("parameters", "move")}
    assert left_out >= lost
    assert left_out - lost <= {("bindings", " → log (log)")}
    assert (await asking(stack.http_port)("/api/vhost-limits"))[1] == [{"vhost": "shop", "value": {"max-queues": 100}}]
    told = (await asking(stack.http_port)("/api/vhosts/shop"))[1]
    assert (told["description"], told["tags"]) == ("of the shop", ["a", "b"])
    await _compare(ask, asking(stack.http_port))
    await asyncio.to_thread(_sign_in, stack)
    told = await _with_newer_hashes(asking(stack.http_port))
    assert (await ask("/api/definitions", "guest:guest", "POST", told))[0] == 204


async def _with_newer_hashes(ask: Get) -> Any:
    """Definitions, once a user that has signed in has another hash than RabbitMQ's."""
    for _ in range(_SECONDS):
        _, told, _ = await ask("/api/definitions")
        if "argon2" in {each["hashing_algorithm"] for each in told["users"]}:
            return told
        await asyncio.sleep(1)
    raise AssertionError(told["users"])


async def _compare(rabbit: Get, hopline: Get) -> None:
    for path in (
        "exchanges/shop/orders",
        "bindings/shop/e/orders/q/orders",
        "permissions/shop/anna",
        "policies/shop/ttl",
        "queues/shop/safe",
    ):
        theirs, ours = [(await ask(f"/api/{path}"))[1] for ask in (rabbit, hopline)]
        theirs, ours = (each[0] if isinstance(each, list) else each for each in (theirs, ours))
        same = {"name", "vhost", "type", "durable", "auto_delete", "internal", "source", "destination", "routing_key"}
        same |= {"destination_type", "user", "configure", "write", "read"}
        assert {key: ours.get(key) for key in same} == {key: theirs.get(key) for key in same}, path
    ours, theirs = [(await ask("/api/whoami", "anna:secret"))[1] for ask in (hopline, rabbit)]
    assert ours == theirs


def _sign_in(stack: Stack) -> None:
    credentials = pika.PlainCredentials("anna", "secret")
    parameters = pika.ConnectionParameters(HOST, stack.address.port, "shop", credentials)
    with closing(pika.BlockingConnection(parameters)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("orders", "eu.new", b"m", mandatory=True)
        assert channel.basic_get("orders", auto_ack=True)[2] == b"m"
