"""Shows how far a block is, as bars on stderr: Spark in it, or what it tells itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark import SparkContext

_SECONDS_BETWEEN_LOOKS = 0.25


@contextmanager
def progress(context: SparkContext, console: Console) -> Iterator[None]:
    """One bar for each stage of Spark's that runs; nothing where stderr is no terminal."""
    if not console.is_terminal:
        yield
        return
    ended = Event()
    with _bars(console) as bars:
        watcher = Thread(target=_watch, args=(context, bars, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


@contextmanager
def steps(name: str, total: int, console: Console) -> Iterator[Callable[[int], None]]:
    """One bar, for a block that tells how many of `total` it has done; nothing where stderr is no terminal."""
    if not console.is_terminal:
        yield lambda _done: None
        return
    with _bars(console) as bars:
        task = bars.add_task(name, total=total)
        yield lambda done: bars.update(task, completed=done)


def _bars(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def _watch(context: SparkContext, bars: Progress, ended: Event) -> None:
    tracker = context.statusTracker()
    shown: dict[int, TaskID] = {}
    while not ended.wait(_SECONDS_BETWEEN_LOOKS):
        running = {stage: tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()}
        for stage in shown.keys() - running.keys():
            bars.remove_task(shown.pop(stage))
        for stage, info in running.items():
            if info is None:
                continue
            if stage not in shown:
                shown[stage] = bars.add_task(f"stage {stage}", total=info.numTasks)
            bars.update(shown[stage], completed=info.numCompletedTasks, total=info.numTasks)
