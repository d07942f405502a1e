"""The generator's processes: forked, watched, and ended in any case."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.failure import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.process import BaseProcess

_FORK = multiprocessing.get_context("fork")
READY_SECONDS = 60.0
STOP_SECONDS = 150.0


class Workers:
    """The processes of one run. A failure in one of them is raised in the coordinator, with its text."""

    def __init__(self) -> None:
        self._processes: list[BaseProcess] = []
        self._failures = _FORK.SimpleQueue()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes if process.pid]

    def start(self, work: Callable[..., None], *arguments: object) -> None:
        """Runs `work(*arguments)` in a process of its own."""
        process = _FORK.Process(target=self._run, args=(work, arguments), daemon=True)
        process.start()
        self._processes.append(process)

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float = READY_SECONDS) -> None:
        """Returns when `condition()`; raises BenchmarkError when a process failed or it takes too long."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{what} did not happen in {seconds:.0f} seconds")
            time.sleep(0.005)

    def sleep(self, seconds: float) -> None:
        """Lets the processes work for a while."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, 0.2))

    def join(self) -> None:
        """Waits until all have finished by themselves."""
        deadline = time.monotonic() + STOP_SECONDS
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            self.check()
            if process.is_alive():
                raise BenchmarkError("a process of the generator does not end")

    def check(self) -> None:
        """Raises BenchmarkError when a process has failed."""
        if not self._failures.empty():
            raise BenchmarkError(self._failures.get())

    def kill(self) -> None:
        """Ends those that still run."""
        for process in self._processes:
            process.kill()
            process.join()

    def _run(self, work: Callable[..., None], arguments: Sequence[object]) -> None:
        try:
            work(*arguments)
        except BenchmarkError as failure:
            self._failures.put(str(failure))
        except BaseException:  # noqa: BLE001 - it is raised again in the coordinator
            self._failures.put(traceback.format_exc())


@contextmanager
def workers() -> Iterator[Workers]:
    """Processes that do not outlive the block."""
    running = Workers()
    try:
        yield running
    finally:
        running.kill()
