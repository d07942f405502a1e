"""Memory of messages that went to another process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from services.common.runtime import Tasks
from services.queue.partitions import gone
from services.queue.partitions.gone import Gone
from tests.support.stream_ends import until

MEBIBYTE = 1 << 20


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    tasks = Tasks()
    yield tasks
    await tasks.stop()


async def test_what_went_together_is_given_back_once(tasks: Tasks) -> None:
    """And what goes later another time; a little is not worth it, until it is much together."""
    given: list[None] = []
    its = Gone(tasks, lambda: given.append(None))
    for _ in range(20):
        its.told(MEBIBYTE)
    await until(lambda: len(given) == 1)
    for _ in range(gone._WORTH // MEBIBYTE - 1):
        its.told(MEBIBYTE)
    await asyncio.sleep(2 * gone._SOON)
    assert len(given) == 1
    its.told(MEBIBYTE)
    await until(lambda: len(given) == 2)


async def test_one_at_a_time(tasks: Tasks) -> None:
    """What goes while the last is being given back waits for that: it may take a while, of a large heap."""
    under_way, most, given, go_on = 0, 0, 0, threading.Event()

    def give_back() -> None:
        nonlocal under_way, most, given
        under_way += 1
        most = max(most, under_way)
        go_on.wait(10)
        under_way -= 1
        given += 1

    its = Gone(tasks, give_back)
    its.told(gone._WORTH)
    await until(lambda: under_way == 1)
    its.told(gone._WORTH)
    await asyncio.sleep(2 * gone._SOON)
    go_on.set()
    await until(lambda: given == 2)
    assert most == 1
