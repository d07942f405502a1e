"""A queue that is deleted is so at every gateway, whoever hears of it first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pamqp import commands

from services.common.topology.slots import SlotName
from tests.support.broker_house import BrokerHouse


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    async with BrokerHouse(tmp_path, gateways=2, queues=1) as house:
        yield house


async def _deleted(client: Any, name: str) -> Any:
    return await client.call(1, commands.Queue.Delete(queue=name), commands.Queue.DeleteOk, seconds=30)


async def test_nobody_is_told_before_all_have_heard(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither who deletes it, nor who deletes it again at a gateway that knows it no more, nor by any name."""
    first, again, other = [await house.connect(gateway=number) for number in (0, 0, 1)]
    await first.declare("q")
    near, far = (gateway._topology for gateway in house.gateways)
    hear, held = far._hear, list[Any]()
    monkeypatch.setattr(far, "_hear", held.append)
    waiting = [asyncio.ensure_future(_deleted(first, "q"))]
    while SlotName("/", "q") in near.by_name:
        await asyncio.sleep(0.01)
    waiting += [asyncio.ensure_future(_deleted(again, "q"))]
    other.publish(b"x", "q", mandatory=True)
    assert not (await asyncio.wait(waiting, timeout=0.2))[0]
    monkeypatch.setattr(far, "_hear", hear)
    for frame in held:
        hear(frame)
    await asyncio.gather(*waiting)
    other.publish(b"y", "q", mandatory=True)
    [returned] = await other.until(lambda: other.messages(commands.Basic.Return))
    assert returned.body == b"y"
