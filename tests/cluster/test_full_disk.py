"""A whole stack on a small disk: filled by messages, filled to the last byte, started on it, and given room again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pamqp import commands

from tests.support.amqp_client import AmqpClient
from tests.support.small_disk import fill, small_disk
from tests.support.stack import HOST, Stack, wait_until

_SECONDS = 60
_BODY = bytes(16 << 10)
_AT_ONCE = 50
_FAR_TOO_MANY = 5000  # 80 MB
_LITTLE = 1 << 20


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """One that runs on a disk of 32 MiB; its log is elsewhere."""
    with small_disk(tmp_path / "data", 32) as disk:
        stack = Stack(disk)
        try:
            stack.start()
            yield stack
        finally:
            stack.kill_all()


@asynccontextmanager
async def connected(stack: Stack) -> AsyncIterator[AmqpClient]:
    client = AmqpClient()
    await client.open(stack.address.port)
    yield client
    client.abort()


def is_blocked(client: AmqpClient) -> bool:
    return len(client.of(commands.Connection.Blocked)) > len(client.of(commands.Connection.Unblocked))


def confirmed(client: AmqpClient) -> int:
    return max((ack.delivery_tag for ack in client.of(commands.Basic.Ack)), default=0)


async def publish_until_blocked(client: AmqpClient) -> int:
    """Gives how many were published."""
    for number in range(_AT_ONCE, _FAR_TOO_MANY, _AT_ONCE):
        for _ in range(_AT_ONCE):
            client.publish(_BODY, "kept", delivery_mode=2)
        await client.until(lambda number=number: is_blocked(client) or confirmed(client) >= number, _SECONDS)  # type: ignore[misc]
        if is_blocked(client):
            return number
    raise AssertionError("a small disk that is never full")


async def store_comes_to_say(stack: Stack, what: str) -> None:
    async with asyncio.timeout(_SECONDS):
        while not (await asyncio.to_thread(stack.said_of, "store")).startswith(what):
            await asyncio.sleep(0.1)


def processes(stack: Stack) -> dict[str, str]:
    """Of a stack's services: another process has another id."""
    return {path.name: path.read_text() for path in stack.data.glob("run/*.pid")}


def healthz(stack: Stack) -> str:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{stack.http_port}/healthz", timeout=_SECONDS) as answer:
            return str(answer.read(), "utf-8")
    except urllib.error.HTTPError as answer:
        return str(answer.read(), "utf-8")


def notes_of(stack: Stack) -> dict[str, str]:
    """What the supervisor's small files say."""
    paths = [*stack.data.glob("run/*.pid"), stack.data / "run/nats.url"]
    return {path.name: path.read_text() for path in paths}


def health(stack: Stack) -> str:
    command = [Path(sys.executable).with_name("hopline"), "health"]
    return subprocess.run(command, env=stack.command_environment(), capture_output=True, text=True, check=False).stdout


async def test_it_goes_on_by_itself(stack: Stack) -> None:
    """What is published while not a byte is left waits, and is confirmed and kept when there is room: none restarts."""
    async with connected(stack) as publisher:
        await publisher.declare("kept", durable=True)
        await publisher.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
        before = await asyncio.to_thread(processes, stack)
        filled = fill(stack.data)
        await store_comes_to_say(stack, "low on disk: ")
        bodies = [b"%d" % number for number in range(2 * _AT_ONCE)]
        for body in bodies[:_AT_ONCE]:
            publisher.publish(body, "kept", delivery_mode=2)
        await publisher.until(lambda: is_blocked(publisher), _SECONDS)
        for body in bodies[_AT_ONCE:]:
            publisher.publish(body, "kept", delivery_mode=2)
        assert "low on disk: " in await asyncio.to_thread(healthz, stack)
        assert is_blocked(publisher)
        assert confirmed(publisher) < len(bodies)
        filled.unlink()
        await publisher.until(lambda: confirmed(publisher) == len(bodies) and not is_blocked(publisher), _SECONDS)
        assert not publisher.of(commands.Basic.Nack)
        await publisher.consume("kept", no_ack=True)
        assert await publisher.bodies(len(bodies), seconds=_SECONDS) == bodies
    assert await asyncio.to_thread(processes, stack) == before


async def test_a_full_disk(stack: Stack) -> None:
    """Publishers and operators are told, a killed stack starts without a free byte, and what was confirmed is there."""
    async with connected(stack) as publisher:
        await publisher.declare("kept", durable=True)
        await publisher.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
        sent = await publish_until_blocked(publisher)
        assert publisher.of(commands.Connection.Blocked)[0].reason.startswith("low on disk: ")
        filled = fill(stack.data, leave=_LITTLE)  # or its log is folded in meanwhile, and gives room back
        await store_comes_to_say(stack, "low on disk: ")
        assert "store    low on disk: " in await asyncio.to_thread(health, stack)
        filled.unlink()
        safe = confirmed(publisher)
    stack.kill_all()
    filled = fill(stack.data)
    starting = asyncio.create_task(asyncio.to_thread(stack.start))
    await store_comes_to_say(stack, "low on disk: ")
    filled.unlink()
    await starting
    await asyncio.to_thread(wait_until, lambda: all(notes_of(stack).values()), _SECONDS, "what other programs read")
    async with connected(stack) as consumer:
        await consumer.consume("kept", no_ack=True)
        assert safe <= len(await consumer.bodies(safe, seconds=_SECONDS)) <= sent
    async with connected(stack) as publisher:
        await publisher.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
        publisher.publish(_BODY, "kept", delivery_mode=2)
        await publisher.until(lambda: confirmed(publisher) == 1, _SECONDS)
