"""What is read back is asked for sparingly: partitions share the messages that their contents are in."""

from __future__ import annotations

import asyncio

import pytest

from services.store.provider import Changes, EntryRow
from services.store.providers.jetstream import JetStreamProvider
from services.store.providers.jetstream_link import JetStreamLink
from tests.support.read_back import batches_of
from tests.support.written_groups import group

_PARTITIONS = 3


class Asked:
    """Messages that are asked for, and how many at once at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sequences: list[int] = []
        self.most = self._now = 0
        self._ask = JetStreamLink.message

        async def message(link: JetStreamLink, sequence: int) -> bytes | None:
            return await self._message(link, sequence)

        monkeypatch.setattr(JetStreamLink, "message", message)

    async def _message(self, link: JetStreamLink, sequence: int) -> bytes | None:
        self.sequences.append(sequence)
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(0)  # the others that are let in come before the answer
        try:
            return await self._ask(link, sequence)
        finally:
            self._now -= 1


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def _of_many(numbers: range) -> Changes:
    """One group with batches of several partitions, each with a content of its own."""
    rows = {number: EntryRow(number, number % _PARTITIONS, number, 1, b"entries") for number in numbers}
    return Changes(contents={number: f"{number}".encode() for number in numbers}, entries=rows)


async def _numbers(provider: JetStreamProvider, partition: int) -> list[int]:
    found = [batch async for batch in batches_of(provider, partition)]
    assert all(batch.columns == f"{batch.entry.id}".encode() for batch in found)
    return [batch.entry.id for batch in found]


async def test_each_message_is_asked_for_once(provider: JetStreamProvider, asked: Asked) -> None:
    """Whoever reads its batches, and however many of them are in it."""
    for first in range(0, 3000, 1000):
        await provider.commit(_of_many(range(first, first + 1000)))
    read = await asyncio.gather(*[_numbers(provider, partition) for partition in range(_PARTITIONS)])
    assert read == [list(range(partition, 3000, _PARTITIONS)) for partition in range(_PARTITIONS)]
    assert len(asked.sequences) == len(set(asked.sequences))


async def test_few_are_asked_for_at_once(provider: JetStreamProvider, asked: Asked) -> None:
    """Each has its answer before it is given up, over a slow network too, where all partitions are read together."""
    for number in range(1, 81):
        await provider.commit(group(number))
    assert len([batch async for batch in batches_of(provider, 1)]) == 80
    assert 1 < asked.most <= 32
