"""A whole stack on PostgreSQL: no kill loses anything confirmed; while the database is away, much works."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pamqp import commands

from tests.support.amqp_client import AmqpClient
from tests.support.cluster_load import Load
from tests.support.postgres import Cluster, cluster
from tests.support.stack import Stack, running_stack, wait_until

_SECONDS = 30.0
_ROUNDS = 3

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(180),
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@pytest.fixture(scope="module")
def stack(postgres: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    data: Path = tmp_path_factory.mktemp("cluster") / "data"
    with running_stack(data, {"HOPLINE_STORE_URL": postgres.new_database()}) as started:
        yield started


def kill_the_store(stack: Stack, postgres: Cluster) -> None:
    stack.wait_until_replaced("store", stack.kill("store"))


def kill_sessions(stack: Stack, postgres: Cluster) -> None:
    postgres.kill_sessions()
    postgres.wait()
    stack.wait_until_healthy()


def restart_the_database(stack: Stack, postgres: Cluster) -> None:
    store = stack.pid("store")
    postgres.stop()
    wait_until(lambda: "is away since 20" in stack.said_of("store"), _SECONDS, "word of it")
    postgres.start()
    stack.wait_until_healthy()
    assert stack.pid("store") == store, "it goes on without a restart"


def kill_the_store_while_the_database_is_away(stack: Stack, postgres: Cluster) -> None:
    postgres.stop()
    killed = stack.kill("store")
    time.sleep(1)
    postgres.start()
    stack.wait_until_replaced("store", killed)


@pytest.mark.parametrize(
    "harm",
    [kill_the_store, kill_sessions, restart_the_database, kill_the_store_while_the_database_is_away],
    ids=lambda harm: str(harm.__name__),
)
def test_confirmed_messages_survive(
    stack: Stack, postgres: Cluster, name: str, harm: Callable[[Stack, Cluster], None]
) -> None:
    """Every confirmed persistent message is delivered, and none again after its ack was committed."""
    load = Load(stack.address, name)
    load.start()
    load.wait_for_progress()
    for _ in range(_ROUNDS):
        harm(stack, postgres)
        load.wait_for_progress()
    load.finish()
    assert load.confirmed() > 0
    assert load.lost() == []
    assert load.broken_promises() == []


async def test_while_the_database_is_away(stack: Stack, postgres: Cluster, name: str) -> None:
    """Publishers of what is to be kept are told, and wait; transient messages go on; then all does, by itself."""
    keeps, passes = AmqpClient(), AmqpClient()
    await keeps.open(stack.address.port)
    await passes.open(stack.address.port)
    await keeps.declare(f"{name}-kept", durable=True)
    await passes.declare(f"{name}-passing")
    await passes.consume(f"{name}-passing", no_ack=True)
    await keeps.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    await asyncio.to_thread(postgres.stop)
    keeps.publish(b"kept", f"{name}-kept", delivery_mode=2)
    blocked = await keeps.expect(commands.Connection.Blocked, seconds=_SECONDS)
    assert "is away since 20" in blocked.reason
    passes.publish(b"on its way", f"{name}-passing")
    assert await passes.bodies(1, seconds=5) == [b"on its way"]
    assert not keeps.of(commands.Basic.Ack)
    await asyncio.to_thread(postgres.start)
    await keeps.expect(commands.Basic.Ack, seconds=_SECONDS)
    await keeps.until(lambda: keeps.of(commands.Connection.Unblocked) or None, _SECONDS)
    keeps.abort()
    passes.abort()
