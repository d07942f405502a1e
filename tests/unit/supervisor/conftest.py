from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from services.supervisor.child import Child
from services.supervisor.executed import execute
from services.supervisor.output import frame_for
from services.supervisor.process import Start
from services.supervisor.program import Program
from tests.support.programs import is_serving


class MakeChild(Protocol):
    def __call__(self, program: Program, start: Start = execute) -> Child: ...


@pytest.fixture
def child(tmp_path: Path) -> MakeChild:
    """Children, of one stack, of programs whose files in the test's folder say that they serve."""
    served: set[str] = set()

    def make(program: Program, start: Start = execute) -> Child:
        pid_file, frame = tmp_path / f"{program.name}.pid", frame_for("console", program.name)

        def note_end(how: str) -> None:
            with (tmp_path / f"{program.name}.ends").open("a") as file:
                file.write(f"{how}\n")

        note_pid = lambda pid: pid_file.write_text(f"{pid}\n")  # noqa: E731
        return Child(program, note_pid, frame, is_serving, served, start, note_end=note_end)

    return make


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> dict[int, Callable[[], None]]:
    """The handlers that were installed, to call instead of signalling the test's own process."""
    handlers: dict[int, Callable[[], None]] = {}

    def install(loop: object, number: int, handler: Callable[[], None]) -> None:
        handlers[number] = handler

    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", install)
    return handlers
