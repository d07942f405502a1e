"""One run at a time into one folder: two would put their files together, and both would be wrong."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark.errors import AnalysisError

_LOCK = ".running"


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
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnalysisError(f"another run writes to {folder}: wait for it, or say another --out") from None
        yield


def require_alone(out: str, *names: str) -> None:
    """Raises AnalysisError where another run writes to one of them now."""
    for name in names:
        with alone(out, name):
            pass
