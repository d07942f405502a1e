"""One run at a time into one folder: two would put their files together, and both would be wrong."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from spark.errors import AnalysisError

_LOCK = ".running"
_PATIENCE = (0.02, 0.2)  # seconds: who only looks whether it is held has it for a moment


@contextmanager
def alone(out: str, name: str) -> Iterator[None]:
    """Holds <out>/<name> while the block runs; raises AnalysisError where another run does.

    On this machine, and on what it has mounted: elsewhere another run cannot be kept out.
    """
    if "://" in out:
        yield
        return
    folder = Path(out).absolute() / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as file:  # it ends with the process, whatever becomes of that
        if not _is_taken(file, fcntl.LOCK_EX, _PATIENCE):
            raise AnalysisError(f"another run writes to {folder}: wait for it, or say another --out")
        yield


def require_alone(out: str, *names: str) -> None:
    """Raises AnalysisError where another run writes to one of them now."""
    for name in names:
        with alone(out, name):
            pass


def at_work(out: str, names: Iterable[str]) -> list[str]:
    """Of these analyses, those that another run holds now; what nobody has run leaves no folder."""
    return [] if "://" in out else [name for name in names if _is_held(Path(out) / name / _LOCK)]


def _is_held(lock: Path) -> bool:
    try:
        with lock.open() as file:
            return not _is_taken(file, fcntl.LOCK_SH)
    except OSError:  # there is none
        return False


def _is_taken(file: TextIO, kind: int, patience: Sequence[float] = ()) -> bool:
    for seconds in (*patience, None):
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if seconds:
                time.sleep(seconds)
        else:
            return True
    return False
