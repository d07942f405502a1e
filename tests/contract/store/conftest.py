from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from services.common import plugins
from tests.simulation.world.provider import Disk, SimulatedProvider
from tests.support.store_house import House


def _simulated(folder: Path) -> SimulatedProvider:
    return SimulatedProvider(folder, Disk(Random(1), 0.0001, lambda: 0.0))


# Installed is what is registered; the simulation's own is handed over.
_PROVIDERS = {**dict.fromkeys(plugins.names("store_providers")), "simulated": _simulated}


@pytest.fixture(params=_PROVIDERS)
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    house = House(request.param, tmp_path, _PROVIDERS[request.param])
    await house.start()
    yield house
    await house.stop()
