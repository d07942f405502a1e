"""A bar on what takes long: on standard error, where a person sees it, and gone when it is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# ruff: noqa: PLC0415 - what is done at once needs no bar

_PATIENCE = 0.5  # seconds


class Bar:
    """`at` says how far it is; without it, or without a whole, the bar moves and nothing else."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._done = 0
        self._total: int | None = None
        self._shown: tuple[Progress, TaskID] | None = None
        self._over = False

    def at(self, done: int, total: int | None = None) -> None:
        """So many are done, of so many."""
        self._done, self._total = done, total
        if self._shown:
            progress, task = self._shown
            progress.update(task, completed=done, total=total)

    def show(self) -> None:
        """Where standard error is a terminal, until `hide`."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from services.cli.bar_column import HowMany

        console = Console(stderr=True)
        if self._over or not console.is_terminal:
            return
        columns = TextColumn("{task.description}"), BarColumn(), HowMany(), TimeElapsedColumn()
        # What the command writes goes where it writes it, which may be a file.
        progress = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._shown = progress, progress.add_task(self._text, completed=self._done, total=self._total)
        progress.start()

    def hide(self) -> None:
        """It is done, or given up; or what comes says itself that it goes on."""
        self._over = True
        if self._shown:
            self._shown[0].stop()


@asynccontextmanager
async def bar(text: str, *, wanted: bool = True) -> AsyncIterator[Bar]:
    """Shown while what is in it takes more than half a second."""
    found = Bar(text)
    waiting = asyncio.get_running_loop().call_later(_PATIENCE, found.show) if wanted else None
    try:
        yield found
    finally:
        if waiting:
            waiting.cancel()
        found.hide()


@contextmanager
def bar_beside(text: str) -> Iterator[None]:
    """The same for what keeps the process busy, or waits without an event loop."""
    found = Bar(text)
    timer = threading.Timer(_PATIENCE, found.show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        found.hide()
