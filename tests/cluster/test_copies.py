"""Messages that go to several queues, and queue processes that move, die and have no CPU: no confirmed copy is lost.

HOPLINE_TEST_SECONDS says how long each is disturbed (8), HOPLINE_TEST_ROUNDS how often (1).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.copies_load import CopiesLoad, kill_in_turn, short_of_cpu

if TYPE_CHECKING:
    from tests.support.stack import Stack

SECONDS = float(os.environ.get("HOPLINE_TEST_SECONDS", "8"))
ROUNDS = int(os.environ.get("HOPLINE_TEST_ROUNDS", "1"))

pytestmark = [pytest.mark.timeout(SECONDS + 240), pytest.mark.parametrize("turn", range(ROUNDS))]


async def _move_to_and_fro(stack: Stack) -> None:
    end = time.monotonic() + SECONDS
    hopline = str(Path(sys.executable).with_name("hopline"))
    for owner in itertools.cycle(("queue-1", "queue-2")):
        command = [hopline, "partitions", "move", "0-63", owner]
        environment = stack.command_environment()
        move = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.DEVNULL)
        assert await move.wait() == 0
        if time.monotonic() > end:
            return


async def test_partitions_move(stack: Stack, name: str, turn: int) -> None:
    """Of a fan-out to 20 durable queues every confirmed copy is there after all partitions went to and fro."""
    load = CopiesLoad(stack.address, f"{name}-{turn}", 20, fan_out=True)
    await load.run(lambda: _move_to_and_fro(stack), under_way=50)
    assert load.confirmed
    assert await load.lost() == []


async def test_owners_die(stack: Stack, name: str, turn: int) -> None:
    """Of a fan-out to 20 durable queues every confirmed copy is there after queue processes died in turn."""
    load = CopiesLoad(stack.address, f"{name}-{turn}", 20, fan_out=True)
    await load.run(lambda: kill_in_turn(stack, SECONDS, every=2.0), under_way=50)
    assert load.confirmed
    assert await load.lost() == []


async def test_owners_die_that_have_no_time(stack: Stack, name: str, turn: int) -> None:
    """Large messages to six queues, two publishers with 100 under way, queue processes with a third of their CPU."""
    load = CopiesLoad(stack.address, f"{name}-{turn}", 6, fan_out=False, size=60_000)
    with short_of_cpu(stack, ("queue-1", "queue-2"), share=0.35):
        await load.run(lambda: kill_in_turn(stack, SECONDS, every=3.0), under_way=100, publishers=2)
    assert load.confirmed
    assert await load.lost() == []
