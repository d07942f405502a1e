"""What the JetStream provider has in memory."""

from __future__ import annotations

from services.store.provider import Changes, EntryRow
from services.store.providers.jetstream_encoding import ContentPosition
from services.store.providers.jetstream_index import Index
from tests.support.others_turns import others_turns


async def test_others_have_their_turns() -> None:
    """While it looks for the batches of many partitions: a million may be there, and leases have to be renewed."""
    index = Index()
    index.space.wrote(1, 1, 1000)
    rows = {number: EntryRow(number, number % 64, number, 1, b"") for number in range(1000)}
    await index.commit(Changes(contents={number: ContentPosition(1, 0, 1, 1).pack() for number in rows}, entries=rows))
    await index.commit(Changes(dead_batches=[0, 64], dead_contents=[0, 64]))
    async with others_turns() as others:
        found = await index.numbers(range(65))
    assert found == {each: [n for n in range(1000) if n % 64 == each and n not in (0, 64)] for each in range(65)}
    assert others.count >= 64
