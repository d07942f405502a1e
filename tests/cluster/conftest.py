"""Stacks that tests may kill: each test file starts its own."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.stack import Stack, running_stack

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running stack, shared by the tests of one file."""
    with running_stack(tmp_path_factory.mktemp("cluster") / "data") as started:
        yield started


@pytest.fixture
def name() -> str:
    """A name that nothing on the stack has."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a stack has logged belongs to the report of a failure."""
    report = yield
    if report.failed:
        report.sections.extend(("Hopline's log", stack.log_tail()) for stack in Stack.running)
    return report
