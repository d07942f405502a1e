"""The data folder: private to its user, and to one store at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.common.errors import InternalError

UNFINISHED = "restore.unfinished"
"""A file that is there while the names of a restored store's files are changed."""

DATABASE = "hopline.db"
"""The file in which SQLite keeps a store, or a half of one."""


class DataFolder:
    """A folder with an exclusive lock, which the system releases when the process dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @contextmanager
    def held(self, *, unfinished: bool = False) -> Iterator[None]:
        """Takes the folder, and releases it at the end."""
        self.take(unfinished=unfinished)
        try:
            yield
        finally:
            self.release()

    def make(self) -> None:
        """Creates the folder, for its user alone, if it does not exist."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def take(self, *, unfinished: bool = False) -> None:
        """Makes the folder when there is none, and locks it. Raises InternalError when another store has it.

        Also when a restore has ended half-way in it, unless the caller is there to finish that (`unfinished`).
        """
        self.make()
        lock = os.open(self.path / "store.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise InternalError(
                f"another store runs on {self.path.absolute()}: stop it, or set HOPLINE_DATA to another folder. "
                "Several take over from each other only on PostgreSQL or NATS: HOPLINE_STORE_URL (deploy/stores.md)"
            ) from None
        self._lock = lock
        if not unfinished and (self.path / UNFINISHED).exists():
            self.release()
            raise InternalError(f"a restore into {self.path.absolute()} was not finished: do it again")

    def release(self) -> None:
        """Lets another store take it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
