"""A crowd that asks has a gateway's turns with all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from pamqp import commands

from services.common.clients.topology import TopologyClient
from services.common.errors import Unavailable
from services.gateway.sessions import looking
from services.rpc import router_pb2
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse
from tests.support.stream_ends import until

_CROWD = 60
_AT_ONCE = 32
_QUESTIONS = (
    (commands.Queue.Declare(0, "there", passive=True), commands.Queue.DeclareOk),
    (commands.Queue.Declare(0, "there"), commands.Queue.DeclareOk),
    (commands.Exchange.Declare(0, "amq.topic", passive=True), commands.Exchange.DeclareOk),
)


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    async with BrokerHouse(tmp_path, gateways=1, queues=1) as house:
        yield house


class Router:
    """Keeps who asks waiting for what there is until it is to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        change = TopologyClient.change

        async def held(topology: TopologyClient, request: router_pb2.ChangeRequest) -> router_pb2.ChangeReply:
            if getattr(request, request.WhichOneof("change") or "").name in {"there", "amq.topic"}:
                self.asked.append(request.connection)
                await self.go_on.wait()
            return await change(topology, request)

        monkeypatch.setattr(TopologyClient, "change", held)


async def _crowd(house: BrokerHouse) -> list[AmqpClient]:
    """Each asks one question."""
    clients = [await house.connect() for _ in range(_CROWD)]
    for number, client in enumerate(clients):
        client.send(1, _QUESTIONS[number % len(_QUESTIONS)][0])
    return clients


async def test_few_ask_the_router_at_once(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passive declarations, and those of queues that are there, go to it thirty-two at a time, each once; who declares
    a new queue waits for none of them.
    """
    first = await house.connect()
    await first.declare("there")
    router = Router(monkeypatch)
    crowd = await _crowd(house)
    await until(lambda: len(router.asked) >= _AT_ONCE)
    await first.declare("new")
    assert len(router.asked) == _AT_ONCE
    router.go_on.set()
    for number, client in enumerate(crowd):
        await client.expect(_QUESTIONS[number % len(_QUESTIONS)][1])
    assert len(set(router.asked)) == len(router.asked) == _CROWD


async def test_clients_that_go_while_they_wait(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have their places."""
    first = await house.connect()
    await first.declare("there")
    router = Router(monkeypatch)
    crowd = await _crowd(house)
    await until(lambda: len(router.asked) >= _AT_ONCE)
    for client in crowd:
        client.writer.transport.abort()
    router.go_on.set()
    first.send(1, _QUESTIONS[0][0])
    await first.expect(commands.Queue.DeclareOk)


async def test_no_router_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a place to ask is told so after as long as who has one."""
    monkeypatch.setattr(looking, "PATIENCE", 0.1)
    places = looking.Looking()
    async with AsyncExitStack() as those_who_ask:
        for _ in range(_AT_ONCE):
            await those_who_ask.enter_async_context(places)
        with pytest.raises(Unavailable, match="router is away"):
            async with places:
                pytest.fail("there is no place")
    async with places:
        pass  # there are places again
