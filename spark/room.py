"""A full disk, in a line that says which."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import disk_usage

from spark.errors import AnalysisError

_SAID = "No space left on device"
_FULL = 32 << 20  # bytes: a disk with less counts as full


@contextmanager
def with_room_in(*folders: str) -> Iterator[None]:
    """Raises AnalysisError where the block fails since there is no room, in one of these folders."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise AnalysisError(no_room(folders)) from error


def is_full(error: Exception) -> bool:
    """Whether it says that a disk is full, in Python or in Java."""
    return (isinstance(error, OSError) and error.errno == errno.ENOSPC) or _SAID in str(error)


def no_room(folders: tuple[str, ...]) -> str:
    """What to say: of the folders those that are full, or all of them where none is any more."""
    full = [folder for folder in folders if _free(folder) < _FULL]
    return f"no space left in {' or '.join(full or folders)}; what is there is not whole"


def scratch() -> str:
    """Where Spark keeps what it works on."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir()


def _free(folder: str) -> int:
    """Bytes; very many where nobody knows, as on what is no disk."""
    for there in (Path(folder), *Path(folder).parents):
        with suppress(OSError):
            return disk_usage(there).free
    return 1 << 62
