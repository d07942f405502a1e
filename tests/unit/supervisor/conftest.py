from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from services.common.supervisor.child import Child
from services.common.supervisor.output import frame_for
from services.common.supervisor.program import Program
from tests.support.programs import is_serving

MakeChild = Callable[[Program], Child]


@pytest.fixture
def child(tmp_path: Path) -> MakeChild:
    """A child of a program whose file in the test's folder says that it serves."""

    def make(program: Program) -> Child:
        return Child(program, tmp_path / f"{program.name}.pid", frame_for("console", program.name), is_serving)

    return make


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> dict[int, Callable[[], None]]:
    """The handlers that were installed, to call instead of signalling the test's own process."""
    handlers: dict[int, Callable[[], None]] = {}

    def install(loop: object, number: int, handler: Callable[[], None]) -> None:
        handlers[number] = handler

    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", install)
    return handlers
