"""What the store in memory, which is an index of others too, does in a commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from services.store.provider import Changes, TakenRow
from services.store.providers.memory import MemoryProvider


class Large(dict[int, TakenRow]):
    """A table that must not be walked through."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("somebody has many rows")

    keys = values = items = __iter__  # type: ignore[assignment]


async def test_a_commit_looks_at_what_it_changes(tmp_path: Path) -> None:
    """Not at all that may come again, of which there is much after a day: each group waits for the one before."""
    provider = MemoryProvider(tmp_path)
    await provider.commit(Changes(taken=[TakenRow(number, 1, number % 3, number, b"") for number in range(9)]))
    provider._taken = Large(provider._taken)
    await provider.commit(Changes(writers={1: 1}))
    await provider.commit(Changes(floors={(1, 0): 4}))
    await provider.commit(Changes(replaced={(1, 1): None}, taken=[TakenRow(9, 1, 1, 9, b"")]))
    assert [number for number in range(10) if number in provider._taken] == [2, 5, 6, 8, 9]
    await provider.tidy(0, 0)
    assert [number for number in range(10) if number in provider._taken] == [6]  # without a floor it is forgotten
