"""A stack of its own, whose spans go to files at once, and applications under OpenTelemetry's instrumentations."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opentelemetry.instrumentation.aio_pika import AioPikaInstrumentor
from opentelemetry.instrumentation.pika import PikaInstrumentor

from tests.support.interop_pika import connected
from tests.support.stack import Stack, running_stack
from tests.support.traced_application import Application

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import pika

AT_ONCE = {"OTEL_BSP_SCHEDULE_DELAY": "50"}


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Started once for all tests."""
    with running_stack(tmp_path_factory.mktemp("hopline") / "data", AT_ONCE) as started:
        yield started


@pytest.fixture
def spans(stack: Stack) -> Path:
    """Where the broker writes."""
    return stack.data / "spans"


@pytest.fixture
def name() -> str:
    """A name that nothing on the broker has."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def plain(stack: Stack) -> Iterator[pika.BlockingConnection]:
    """A connection of an application that knows nothing of traces."""
    with connected(stack.address) as opened:
        yield opened


@pytest.fixture
def pika_application() -> Iterator[Application]:
    """Every channel that pika opens is instrumented."""
    application, instrumentor = Application(), PikaInstrumentor()
    instrumentor.instrument(tracer_provider=application.provider)
    yield application
    instrumentor.uninstrument()


@pytest.fixture
def aio_pika_application() -> Iterator[Application]:
    """Every queue and exchange of aio-pika is instrumented."""
    application, instrumentor = Application(), AioPikaInstrumentor()
    instrumentor.instrument(tracer_provider=application.provider)
    yield application
    instrumentor.uninstrument()


@pytest.fixture
def hopline(stack: Stack) -> Callable[..., str]:
    """Runs a command against the stack; gives what it printed."""

    def run(*arguments: str) -> str:
        command = [str(Path(sys.executable).with_name("hopline")), *arguments]
        done = subprocess.run(command, env=stack.command_environment(), capture_output=True, text=True, check=True)
        return done.stdout

    return run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the stack has logged belongs to the report of a failure."""
    report = yield
    if report.failed:
        report.sections.extend(("Hopline's log", stack.log_tail()) for stack in Stack.running)
    return report
