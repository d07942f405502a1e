"""One stack in containers for all tests here. Without Docker they fail: it is part of what they prove."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.compose_stack import ComposeStack, running_compose_stack

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


@pytest.fixture(scope="session")
def started_stack() -> Iterator[ComposeStack]:
    with running_compose_stack() as started:
        yield started


@pytest.fixture
def stack(started_stack: ComposeStack) -> ComposeStack:
    """The stack with two queue processes, two gateways and a balancer, in any state that the test before left."""
    started_stack.up()
    return started_stack


@pytest.fixture
def name() -> str:
    """A name that nothing on the stack has."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the containers have logged belongs to the report of a failure."""
    report = yield
    if report.failed:
        report.sections.extend(("Hopline's log", stack.log_tail()) for stack in ComposeStack.running)
    return report
