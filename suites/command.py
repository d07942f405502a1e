"""Runs a foreign command: within its time, and nothing of it is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from benchmarks.brokers.processes import descendants
from suites.failure import NotRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

INTERRUPTS = 4
LAST_WORDS_SECONDS = 5.0
"""After each interrupt: the first one may only reach the test that hangs."""


def run(
    command: Sequence[str], folder: Path, log: Path, seconds: float, environment: Mapping[str, str] | None = None
) -> bool:
    """Whether it ended by itself; what it prints goes to the end of `log`. Raises NotRun when there is no such command.

    At its time limit it is interrupted, so that it can still report, and then ended with every process below it.
    """
    with log.open("ab") as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as failure:
            raise NotRun(f"{command[0]} cannot be started: {failure.strerror}") from failure
    try:
        return _wait(process, seconds)
    finally:
        _end(process)


def install(command: Sequence[str], folder: Path, log: Path) -> None:
    """Runs a package client as it is set up here; raises NotRun with its last line when it does not succeed."""
    try:
        subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=900)
    except FileNotFoundError as failure:
        raise NotRun(f"{command[0]} is not installed") from failure
    except subprocess.TimeoutExpired as failure:
        raise NotRun(f"{command[0]} did not answer within 15 minutes") from failure
    except subprocess.CalledProcessError as failure:
        said = f"{failure.stdout}\n{failure.stderr}".strip()
        log.write_text(said)
        raise NotRun(f"{' '.join(command[:4])} … failed: {said.splitlines()[-1] if said else ''}") from failure


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        for _ in range(INTERRUPTS):
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(LAST_WORDS_SECONDS)
                break
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    # A worker that made itself the leader of a session is in another group, and still below us.
    below = descendants(process.pid) if process.poll() is None else []
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in below[1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
