from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from services.common import plugins
from services.store.choice import Choice, with_configuration
from services.store.provider import Provider
from tests.simulation.world.provider import Disk, SimulatedProvider
from tests.support.jetstream import Servers, alone
from tests.support.postgres import Cluster, cluster
from tests.support.store_house import House


def _simulated(folder: Path) -> SimulatedProvider:
    return SimulatedProvider(folder, Disk(Random(1), 0.0001, lambda: 0.0))


def _apart(messages: str, new: Callable[[], str], urls: dict[Path, str]) -> Callable[[Path], Provider]:
    """The same, for the configuration."""

    def create(folder: Path) -> Provider:
        url = urls[folder] = urls.get(folder) or new()
        return with_configuration(Choice(messages), url, "it").make(folder)

    return create


# Installed is what is registered; the simulation's own is handed over. Of two the first has the configuration.
_PROVIDERS = (*plugins.names("store_providers"), "simulated", "sqlite+memory", "postgres+sqlite")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@pytest.fixture(scope="session")
def nats() -> Iterator[Servers]:
    with alone() as running:
        yield running


def _by_url(name: str, new: Callable[[], str], urls: dict[Path, str]) -> Callable[[Path], Provider]:
    """A database, or a stream, for each folder."""

    def create(folder: Path) -> Provider:
        url = urls[folder] = urls.get(folder) or new()
        made: Provider = plugins.load("store_providers", name)(folder, url)
        return made

    return create


@pytest.fixture(params=_PROVIDERS)
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    urls: dict[Path, str] = {}
    if request.param == "postgres":
        create = _by_url(request.param, request.getfixturevalue("postgres").new_database, urls)
        house = House(request.param, tmp_path, create, lasting=True)
    elif request.param == "jetstream":
        create = _by_url(request.param, request.getfixturevalue("nats").url, {})
        house = House(request.param, tmp_path, create, lasting=True)
    elif request.param == "postgres+sqlite":
        create = _apart("sqlite", request.getfixturevalue("postgres").new_database, urls)
        house = House(request.param, tmp_path, create, lasting=True)
    elif request.param == "sqlite+memory":
        house = House(request.param, tmp_path, _apart("memory", lambda: "sqlite:", {}))
    else:
        house = House(request.param, tmp_path, _simulated if request.param == "simulated" else None)
    await house.start()
    yield house
    await house.stop()
    for url in urls.values():
        request.getfixturevalue("postgres").give_back(url)
