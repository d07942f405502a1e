"""A stack of the last release is brought to this one, a process at a time, under load. By hand: `make upgrade`.

HOPLINE_PREVIOUS names another revision to come from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster_load import Load
from tests.support.postgres import cluster
from tests.support.releases import PROCESSES, MixedStack, installed, last_release, mixed_stack

_FORMER = "former"


@pytest.fixture
def former(tmp_path: Path) -> dict[str, Path]:
    """The last release."""
    return {_FORMER: installed(os.environ.get("HOPLINE_PREVIOUS") or last_release(), tmp_path)}


@pytest.fixture
def stack(former: dict[str, Path], tmp_path: Path) -> Iterator[MixedStack]:
    """Of the last release."""
    with mixed_stack(tmp_path / "data", former, _FORMER) as started:
        yield started


@pytest.fixture
def on_a_database(former: dict[str, Path], tmp_path: Path) -> Iterator[MixedStack]:
    """The same, with its store in a database."""
    with cluster() as database:
        url = database.new_database()
        with mixed_stack(tmp_path / "data", former, _FORMER, HOPLINE_STORE_URL=url) as started:
            yield started


@pytest.mark.timeout(600)
@pytest.mark.parametrize("order", [PROCESSES, PROCESSES[::-1]], ids=["store-first", "gateway-first"])
def test_each_process_in_turn(stack: MixedStack, order: tuple[tuple[str, ...], ...]) -> None:
    """Old and new serve together: after each step all queues go on, and at the end nothing confirmed is lost."""
    _replaced(stack, order)


@pytest.mark.timeout(600)
def test_on_a_database(on_a_database: MixedStack) -> None:
    """The same: the new store brings the tables forward, and the former release's processes go on with it."""
    _replaced(on_a_database, PROCESSES)


def _replaced(stack: MixedStack, order: tuple[tuple[str, ...], ...]) -> None:
    load = Load(stack.address, "upgraded")
    load.start()
    load.wait_for_progress()
    for name, *_ in order:
        stack.replace(name, "")
        load.wait_for_progress()
    load.finish()
    assert load.confirmed()
    assert load.lost() == []
    assert load.broken_promises() == []
    assert "Traceback" not in stack.log()
