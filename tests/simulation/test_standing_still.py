"""What goes in circles is interrupted."""

from __future__ import annotations

import asyncio
import itertools
import math

import pytest

from tests.simulation.history import History
from tests.simulation.scenario import Faults
from tests.simulation.standing_still import StandsStill, interrupted
from tests.simulation.world import World


def test_a_circle() -> None:
    """It is said where."""
    with pytest.raises(StandsStill, match=r"test_a_circle \(.*test_standing_still.py"), interrupted(0.05):
        for _ in itertools.count():
            pass


def test_what_ends() -> None:
    """Nothing comes of it later."""
    with interrupted(0.05):
        pass
    sum(range(10_000_000))


def test_faults_that_are_over_in_no_time() -> None:
    """The next moment that a float can tell comes, though the time until then, added to now, is now."""

    async def wait() -> None:
        await asyncio.sleep(1.9)
        faults = Faults(None, History(asyncio.get_running_loop().time))
        faults.until = math.nextafter(asyncio.get_running_loop().time(), math.inf)
        await faults.begin([])

    with interrupted(5):
        World(1).run(wait())
