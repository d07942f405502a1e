"""How far it is, for a person who waits: a bar on the terminal, and nothing where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn


class Shown:
    """Takes what `services/store/moving/progress.py` says."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("")

    def phase(self, what: str, total: int = 0) -> None:
        """A line of its own; that of the former stays, with how much it was."""
        self._progress.stop_task(self._task)
        if not self._progress.tasks[-1].description:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total or None)

    def step(self, size: int) -> None:
        """So many bytes more."""
        self._progress.advance(self._task, size)


@contextmanager
def shown() -> Iterator[Shown]:
    """On the standard error: what comes out is in the standard output."""
    columns = (TextColumn("{task.description:>16}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        yield Shown(progress)
