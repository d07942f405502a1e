"""Consumers with long selectors that come at once, as all of a gateway do when a queue has another owner."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from services.common.memo import Memo
from services.common.selectors import selector as compiling
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House

_NEW = itertools.count()
_MANY = 20


def _texts() -> list[str]:
    return [" OR ".join(f"new{next(_NEW)} = {each}" for each in range(100)) for _ in range(_MANY)]


@pytest.fixture
async def turns(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
    """Of the event loop, in which one was compiled; nothing is remembered but what somebody has."""
    turn, found, compiled = 0, list[int](), compiling._compiled

    def counted(text: str) -> compiling.Selector:
        found.append(turn)
        return compiled(text)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(compiling, "_compiled", counted)
    monkeypatch.setattr(compiling, "_known", Memo[str, compiling.Selector](2, 0))
    beside = asyncio.ensure_future(others())
    yield found
    beside.cancel()


def _attaches(queue_id: int, texts: list[str]) -> list[pb.AttachConsumer]:
    return [
        pb.AttachConsumer(
            consumer=number, queue_id=queue_id, tag=f"t{number}", selector=text, messages=1, bytes=1 << 20
        )
        for number, text in enumerate(texts, 1)
    ]


async def test_one_is_compiled_in_a_turn(house: House, turns: list[int]) -> None:
    """Each once; what is sent behind them is carried out behind them, and who is none is told so alone."""
    queue_id, link = await house.declare("q"), await house.link()
    texts = _texts()
    texts[3] = "it = 'ends' OR " * 100
    await link.send(attaches=_attaches(queue_id, texts))
    await link.send(detaches=[_MANY])
    await link.until(lambda: any(frame.detached for frame in link.frames))
    answers = {answer.consumer: answer.reason for frame in link.frames for answer in frame.attached}
    assert answers == {number: pb.OTHER if number == 4 else pb.NONE for number in range(1, _MANY + 1)}
    assert [list(frame.detached) for frame in link.frames if frame.detached] == [[_MANY]]
    assert len(set(turns)) == _MANY
    assert len(turns) <= _MANY + 1  # what is none is tried again where it is wanted


async def test_what_others_have_is_at_hand(house: House, turns: list[int]) -> None:
    """Consumers of another gateway with the same ones cost nothing."""
    queue_id, link, texts = await house.declare("q"), await house.link(), _texts()
    await link.send(attaches=_attaches(queue_id, texts))
    await link.until(lambda: sum(len(frame.attached) for frame in link.frames) == _MANY)
    other = await house.link(origin=1001)
    await other.send(attaches=_attaches(queue_id, texts))
    await other.until(lambda: sum(len(frame.attached) for frame in other.frames) == _MANY)
    assert len(turns) == _MANY


async def test_those_that_wait_for_their_queue_keep_theirs(house: House, turns: list[int]) -> None:
    """A partition that is being read back attaches all that wait for it in one turn."""
    queue_id, link, texts = await house.declare("q"), await house.link(), _texts()
    host = house.queues["queue-1"]._host
    host.registry.deleting.begin(queue_id)
    await link.send(attaches=_attaches(queue_id, texts))
    await link.until(lambda: len(turns) == _MANY)
    host.registry.deleting.over(queue_id)
    await link.until(lambda: sum(len(frame.attached) for frame in link.frames) == _MANY)
    assert len(turns) == _MANY


async def test_those_of_their_queues_are_compiled_so_too(house: House, turns: list[int]) -> None:
    """Those that `defaultFilters` says, when the queues are made, and when consumers come after it was forgotten."""
    filters = [{"f": {"x-filter-jms-selector": [text]}} for text in _texts()]
    queues = [await house.declare(f"q{at}", table={"defaultFilters": each}) for at, each in enumerate(filters)]
    del turns[:]
    link = await house.link()
    await link.send(
        attaches=[
            pb.AttachConsumer(consumer=number, queue_id=queue_id, tag="t", messages=1, bytes=1 << 20)
            for number, queue_id in enumerate(queues, 1)
        ]
    )
    await link.until(lambda: sum(len(frame.attached) for frame in link.frames) == _MANY)
    assert len(set(turns)) == len(turns) == _MANY
