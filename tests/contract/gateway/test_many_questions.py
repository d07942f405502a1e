"""A crowd that asks has a gateway's turns with all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from pamqp import commands

from services.common.clients.topology import TopologyClient
from services.rpc import router_pb2
from tests.support.broker_house import BrokerHouse

_CROWD = 40
_AT_ONCE = 16


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    async with BrokerHouse(tmp_path, gateways=1, queues=1) as house:
        yield house


async def test_few_ask_the_router_at_once(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passive declarations of queues and exchanges go to it sixteen at a time, in the order in which they came; who
    declares waits for none of them.
    """
    asked, go_on, change = list[str](), asyncio.Event(), TopologyClient.change

    async def held(topology: TopologyClient, request: router_pb2.ChangeRequest) -> router_pb2.ChangeReply:
        if (what := getattr(request, request.WhichOneof("change") or "")).passive:
            asked.append(what.name)
            await go_on.wait()
        return await change(topology, request)

    first = await house.connect()
    await first.declare("there")
    monkeypatch.setattr(TopologyClient, "change", held)
    crowd = [await house.connect() for _ in range(_CROWD)]
    for number, client in enumerate(crowd):
        if number % 2:
            client.send(1, commands.Queue.Declare(0, "there", passive=True))
        else:
            client.send(1, commands.Exchange.Declare(0, "amq.topic", passive=True))
    while len(asked) < _AT_ONCE:
        await asyncio.sleep(0.01)
    await first.declare("new")
    assert len(asked) == _AT_ONCE
    go_on.set()
    for number, client in enumerate(crowd):
        await client.expect(commands.Queue.DeclareOk if number % 2 else commands.Exchange.DeclareOk)
    assert sorted(asked) == ["amq.topic"] * (_CROWD // 2) + ["there"] * (_CROWD // 2)
