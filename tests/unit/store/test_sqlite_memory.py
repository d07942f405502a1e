"""What the SQLite provider keeps of its file in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from services.common.heap import resident, trim
from services.store.provider import Changes, EntryRow
from services.store.providers.sqlite import SQLiteProvider
from tests.support.read_back import batches_of

if TYPE_CHECKING:
    from pathlib import Path

MEBIBYTE: Final = 1 << 20
LARGE: Final = 48
"""Mebibytes of a partition."""


def _kept() -> int:
    trim()
    return resident()


async def test_a_partition_that_was_written_and_read_back(tmp_path: Path) -> None:
    """Leaves little behind: handed over, a backlog would be in memory twice more, in the caches of two connections."""
    provider = SQLiteProvider(tmp_path)
    await provider.open()
    before = _kept()
    for number in range(LARGE):
        batch = EntryRow(number, 1, number, 1, b"entries")
        await provider.commit(Changes(contents={number: bytes(MEBIBYTE)}, entries={number: batch}))
    read = 0
    async for stored in batches_of(provider, 1):
        read += len(stored.columns)
        del stored
    grown = _kept() - before
    await provider.close()
    assert read == LARGE * MEBIBYTE
    assert grown < LARGE * MEBIBYTE * 2 // 3
