"""Every test runs on asyncio's loop and on uvloop's, which services use, and most over each kind of address."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator

import pytest
import uvloop


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def unix() -> Iterator[str]:
    """A socket's path is short."""
    with tempfile.TemporaryDirectory(prefix="h") as folder:
        yield f"unix:{folder}/s"


@pytest.fixture(params=["unix", "tcp"])
def address(request: pytest.FixtureRequest, unix: str) -> str:
    """Where a server may listen."""
    return unix if request.param == "unix" else "127.0.0.1:0"
