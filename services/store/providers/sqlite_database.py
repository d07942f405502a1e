"""A connection to the store's file in a thread of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import aiosqlite

P = ParamSpec("P")
T = TypeVar("T")

# A commit of one message writes five pages whole, so they are small: with pages four times as large it takes twice as
# long, and what a large batch saves by fewer of them is little. The size counts only when the file is made.
_PRAGMAS = (
    "page_size = 4096",
    "auto_vacuum = INCREMENTAL",
    "journal_mode = WAL",
    "synchronous = FULL",
    "secure_delete = OFF",
    "temp_store = MEMORY",
    # The provider checkpoints beside the commits, not within one.
    "wal_autocheckpoint = 0",
    # A log that grew under load is cut back when it starts anew.
    "journal_size_limit = 268435456",
    "busy_timeout = 5000",
)


# Each connection keeps that much of the file for itself, for good, and the system has all of it besides: who reads what
# it read before needs no more than the inner pages of indexes, who writes also the pages of what comes and goes.
SMALL_CACHE: Final = 2 << 20
LARGE_CACHE: Final = 16 << 20


class Database:
    """One aiosqlite connection that runs whole functions, each with a single hop into its thread."""

    def __init__(self, path: Path, cache: int = SMALL_CACHE) -> None:
        """`cache` in bytes."""
        self._path = path
        self._cache = cache
        self._connection: aiosqlite.Connection | None = None

    async def open(self) -> None:
        """Opens the file, or makes it; raises sqlite3.Error, OSError."""
        _keep_to_oneself(self._path)
        self._connection = await aiosqlite.connect(self._path, isolation_level=None, cached_statements=64)
        for pragma in (*_PRAGMAS, f"cache_size = -{self._cache >> 10}"):
            await self.run(_execute, f"PRAGMA {pragma}")

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    async def close(self) -> None:
        """Closes the connection, once the work under way is done."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def run(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `work(connection, …)` in the connection's thread and gives what it returns or raises."""
        assert self._connection is not None, "not open"
        raw = self._connection._conn  # noqa: SLF001 - aiosqlite offers a hop per statement, and this is one per group
        done: T = await self._connection._execute(work, raw, *args, **kwargs)  # type: ignore[no-untyped-call]  # noqa: SLF001 - as above
        return done

    async def rows(self, sql: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return await self.run(_execute, sql, tuple(parameters))


def _keep_to_oneself(path: Path) -> None:
    """Makes the file readable by its user only: it has hashes of passwords. Its log gets the same permissions."""
    with suppress(OSError):  # if it lasts, opening the file raises it
        path.touch(mode=0o600)
        path.chmod(0o600)


def _execute(connection: sqlite3.Connection, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    return connection.execute(sql, parameters).fetchall()
