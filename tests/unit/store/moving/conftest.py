from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.store.moving.site import Site, site
from services.store.providers import jetstream_writer, postgres_writer
from tests.support.jetstream import Servers, alone
from tests.support.kept import write_everything
from tests.support.moving import house_of
from tests.support.postgres import Cluster, cluster


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@pytest.fixture(scope="session")
def nats() -> Iterator[Servers]:
    with alone() as running:
        yield running


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Site]:
    """A new place of each kind."""
    for writer in (postgres_writer, jetstream_writer):
        monkeypatch.setattr(writer, "_ENDING_SECONDS", 0.3)
    count = iter(range(100))

    def make(kind: str) -> Site:
        if kind == "postgres":
            return site(request.getfixturevalue("postgres").new_database())
        if kind == "jetstream":
            return site(request.getfixturevalue("nats").url())
        if kind == "apart":
            return site(f"sqlite:{tmp_path / f'place-{next(count)}'}", "sqlite:")
        return site(f"{kind}:{tmp_path / f'place-{next(count)}'}")

    return make


@pytest.fixture
def filled(place: Callable[[str], Site]) -> Callable[[str], Any]:
    """A place with a store that has one of everything, and does not run."""

    async def make(kind: str) -> Site:
        where = place(kind)
        house = house_of(where)
        await house.start()
        await write_everything(house)
        await house.stop()
        return where

    return make
