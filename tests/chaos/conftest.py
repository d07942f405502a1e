"""The stack that the chaos test disturbs. Without Docker it fails: containers are what it is about."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.chaos.containers import ContainerStack
from tests.support.chaos.stores import STORES
from tests.support.compose_stack import build_images

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

LOGS = os.environ.get("HOPLINE_CHAOS_LOGS", "")  # folder for what every container has logged
TAIL = 4000

_running: list[ContainerStack] = []


@pytest.fixture
def stack() -> Iterator[ContainerStack]:
    """A stack of its own, with its store where HOPLINE_CHAOS_STORE says: sqlite, postgres or jetstream."""
    kept = STORES[os.environ.get("HOPLINE_CHAOS_STORE", "sqlite")]
    build_images("postgres" if kept.name == "postgres" else "")
    stack = ContainerStack(kept)
    _running.append(stack)
    try:
        stack.start()
        yield stack
        _write_logs(stack)
    finally:
        _running.remove(stack)
        stack.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the containers have logged belongs to the report of a failure."""
    report = yield
    if report.failed:
        for stack in _running:
            report.sections.extend((f"log of {name}", text[-TAIL:]) for name, text in stack.logs().items())
    return report


def _write_logs(stack: ContainerStack) -> None:
    if LOGS:
        for name, text in stack.logs().items():
            (Path(LOGS) / f"{name}.log").write_text(text)
