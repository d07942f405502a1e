"""A costly question that many have at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from services.mgmt.tree import mirror
from services.mgmt.tree.mirror import Mirror
from services.mgmt.tree.question import Question
from services.rpc.store_pb2 import Record, Records
from tests.unit.mgmt.tree.test_mirror import Listing, _followed, _queue


class Asked:
    """Answers when the test says so, each time what it is told."""

    def __init__(self) -> None:
        self.times = 0
        self.answers: asyncio.Queue[bool] = asyncio.Queue()

    async def __call__(self) -> bool:
        self.times += 1
        return await self.answers.get()


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_who_comes_meanwhile_shares_the_next() -> None:
    """The one under way may have been asked before what they did; there is one more, however many they are."""
    question, asked = Question(), Asked()
    first = asyncio.ensure_future(question.answer(asked))
    await _turns()
    others = [asyncio.ensure_future(question.answer(asked)) for _ in range(20)]
    asked.answers.put_nowait(False)
    assert not await first
    await _turns()
    assert not any(each.done() for each in others)
    asked.answers.put_nowait(True)
    assert all(await asyncio.gather(*others))
    assert asked.times == 2


async def test_who_gives_up_leaves_the_question_to_the_others() -> None:
    """Its answer is nobody's."""
    question, asked = Question(), Asked()
    first = asyncio.ensure_future(question.answer(asked))
    await _turns()
    second, third = (asyncio.ensure_future(question.answer(asked)) for _ in range(2))
    await _turns()
    first.cancel()
    await _turns()
    second.cancel()
    await _turns()
    asked.answers.put_nowait(True)
    assert await third
    assert asked.times == 3


class Counting(Listing):
    """Counts how often all records of a kind are asked for."""

    times = 0

    async def list_records(self, kinds: Iterable[str] = ()) -> list[Record]:
        self.times += 1
        await asyncio.sleep(0)
        return await super().list_records(kinds)


async def test_many_changes_that_were_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred callers whose change does not arrive ask the store once or twice, not each for all records."""
    monkeypatch.setattr(mirror, "_SOON", 0)  # all give up waiting in the same turn, however slow the machine
    kept, newer = Mirror(), _queue("a", "/", n=2)
    await _followed(kept, Records(records=[newer], snapshot=True, last=True))
    store = Counting(newer)
    await asyncio.gather(*(kept.arrived(store, "queue", lambda: False) for _ in range(100)))
    assert 1 <= store.times <= 3
