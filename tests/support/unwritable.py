"""What a store says of itself while it cannot write."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.store_house import House


async def told(house: House, words: str) -> str:
    """What followers of leases are told of the store, as soon as it has `words`, or is empty for none."""
    heard: list[str] = []
    try:
        async with asyncio.timeout(20):
            async for table in house.engine.leases.watch("queue"):
                heard.append(table.unwritable)
                if words in table.unwritable and bool(words) == bool(table.unwritable):
                    return table.unwritable
    except TimeoutError:
        pytest.fail(f"heard {heard}, not {words!r}")
    raise AssertionError
