"""The session that writes: one process at a time, one group after the other, none of them twice.

A process that becomes the writer raises the epoch in the row of the table `store`; every group is written with its
session's epoch, and numbered in that row, in the same transaction. So a session that was given up writes nothing any
more, whether it is another process's or a former one of this process, whose bytes may still be under way.

If the answer to a commit is lost, the next session raises the epoch, which waits for what the former session had begun
and shuts out the rest, and reads the number of the last group. That is a commit too: the group that it has seen is as
safe as itself, on a standby as well.

A process counts as alive as long as any of its sessions, which share an advisory lock with the process's number, does
something: a process that would be the writer waits for the end of that (`postgres_lookout.py`). That decides when
another begins. The epoch is what protects the data.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import TypeVar

from services.common.clock import epoch_ms, monotonic
from services.common.errors import InternalError
from services.common.runtime import Tasks
from services.store.provider import Changes, Occupied
from services.store.providers import postgres_session as session
from services.store.providers.postgres_lookout import evict, other
from services.store.providers.postgres_session import Connection, within
from services.store.providers.postgres_signs import signs
from services.store.providers.postgres_write import WRITE, arguments, weight
from services.store.providers.standing import Away, Standing
from services.store.providers.standstill import Standstill

_ANSWER_SECONDS = 10.0
_BYTES_PER_SECOND = 1 << 20  # the slowest rate at which a group is expected to be taken
_LARGE = 2 << 20  # bytes that may take so long that others would take this process for dead
_LOOK_SECONDS = 0.5
_PING_SECONDS = 1.0  # so that processes that stand by see that it is alive
_ENDING_SECONDS = 1.0  # for a writer that is just ending; beside one that lives a process stands by
_POLL_SECONDS = 0.2

_TAKE_OVER = """
    UPDATE store SET epoch = epoch + 1, owner = $1, who = $2, since = now() RETURNING epoch, written
"""
_RETURN = "UPDATE store SET epoch = epoch + 1 WHERE owner = $1 RETURNING epoch, written"


T = TypeVar("T")


class Writer:
    """The writer of the database at `url`; `open` comes before anything else."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._shown = session.shown(url)
        self._owner = secrets.randbits(62)
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self.epoch = 0
        self._written = 0  # number of the last group that is known to be written
        self._number = 0  # number of the last group that was sent
        self._sent: Changes | None = None  # that group, while its outcome is unknown
        self._standing = Standing(self._shown, "the database", session.MEND)
        self._still = Standstill()
        self._tasks = Tasks()

    @property
    def trouble(self) -> str:
        """Why nothing can be written, and since when; "" as far as is known."""
        return self._standing.trouble

    def watch(self, ended: Callable[[BaseException], None]) -> None:
        """`ended` is called once when this process cannot be the writer any more."""
        self._standing.watch(ended)

    async def open(self, connection: Connection) -> None:
        """Becomes the writer with this connection; raises Occupied, soon, if another process goes on writing."""
        await connection.execute("SELECT pg_advisory_lock_shared($1)", self._owner)
        deadline = monotonic() + _ENDING_SECONDS
        while not (row := await self._take_over(connection)):
            if monotonic() > deadline:
                raise Occupied((await other(connection, self._url)).text)
            await asyncio.sleep(_POLL_SECONDS)
        self.epoch, self._written = row
        self._number = self._written
        self._connection = connection
        self._still.look()
        self._still.sure()
        self._tasks.start(self._keep(), "database")
        self._tasks.start(self._still.run(), "standstill")

    async def _take_over(self, connection: Connection) -> tuple[int, int] | None:
        """Raises the epoch; None while the last writer is alive."""
        await evict(connection)
        async with connection.transaction():
            last = await connection.fetchval("SELECT owner FROM store FOR UPDATE")
            if last and not await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", last):
                return None
            epoch, written = await connection.fetchrow(_TAKE_OVER, self._owner, _who())
            return epoch, written

    async def sure(self) -> None:
        """As Elsewhere says."""
        if self._standing.ended:
            raise self._standing.ended
        cut = self._connection is not None and self._connection.is_closed()
        if self._still.look() or (cut and not self.trouble):
            await self._ping()
            self._still.sure()

    async def close(self) -> None:
        """Ends: nothing is written any more."""
        await self._tasks.stop()
        connection, self._connection = self._connection, None
        await session.close(connection)

    # ------------------------------------------------------------------ groups

    async def commit(self, changes: Changes) -> None:
        """As Provider says. If called again with the same changes, it does not write what is there already."""
        async with self._turn:
            connection = await self._there()
            if self._sent is changes and self._written == self._number:
                self._sent = None
                return
            self._sent, self._number = changes, self._written + 1
            fence = (self.epoch, self._number, changes.at)
            size = weight(changes)
            async with signs(self._url, self._owner) if size > _LARGE else nullcontext():
                written = connection.execute(WRITE, *fence, *arguments(changes))
                await self._ask(_ANSWER_SECONDS + size / _BYTES_PER_SECOND, connection, written)
            self._sent, self._written = None, self._number

    async def run(self, *statements: tuple[str, int]) -> None:
        """Runs statements in one transaction, fenced as groups are, but not numbered: twice is the same as once."""
        async with self._turn:
            connection = await self._there()
            await self._ask(_ANSWER_SECONDS, connection, self._fenced(connection, statements))

    async def _fenced(self, connection: Connection, statements: tuple[tuple[str, int], ...]) -> None:
        async with connection.transaction():
            if not await connection.fetchval("SELECT true FROM store WHERE epoch = $1 FOR UPDATE", self.epoch):
                raise Away("it has another writer")
            for sql, argument in statements:
                await connection.execute(sql, argument)

    async def count(self, name: str) -> int:
        """Increments a counter, and gives its value; at the start of the store."""
        async with self._turn:
            connection = await self._there()
            sql = "UPDATE counter SET value = value + 1 WHERE name = $1 RETURNING value"
            value: int = await self._ask(_ANSWER_SECONDS, connection, connection.fetchval(sql, name))
            return value

    async def _ask(self, seconds: float, connection: Connection, work: Awaitable[T]) -> T:
        """The result of `work`. Without an answer the session is given up: the next one finds out the outcome."""
        asked = epoch_ms()
        try:
            return await within(seconds, connection, work)
        except Exception as failure:
            raise self._lose(connection, failure, asked) from failure
        except BaseException:
            self._drop(connection)
            raise

    # ------------------------------------------------------------------ sessions

    async def _there(self) -> Connection:
        """The session that writes; raises Away, or the reason why this process writes no more."""
        if self._standing.ended:
            raise self._standing.ended
        connection = self._connection
        if connection is None or connection.is_closed():
            if connection is not None:
                self._lose(connection, ConnectionError("it has ended the connection"))
            connection = self._connection = await self._come_back()
            self._back()
        return connection

    async def _come_back(self) -> Connection:
        try:
            connection = await session.connect(self._url, writes=True)
            try:
                await within(_ANSWER_SECONDS, connection, self._return(connection))
            except BaseException:
                connection.terminate()
                raise
        except InternalError:
            raise
        except Exception as failure:
            raise self._lost(failure) from failure
        return connection

    async def _return(self, connection: Connection) -> None:
        """Raises the epoch, and reads the number of the last group."""
        await connection.execute("SELECT pg_advisory_lock_shared($1)", self._owner)
        row = await connection.fetchrow(_RETURN, self._owner)
        if row is None:
            self._standing.end((await other(connection, self._url)).text)
        epoch, written = row
        if not self._written <= written <= self._number:
            self._standing.end(
                f"{self._shown} has lost what it had confirmed: its last group is {written}, and {self._written} was "
                "written; has a standby taken over that did not have all of it?"
            )
        self.epoch, self._written = epoch, written

    def _lose(self, connection: Connection, failure: Exception, asked: int = 0) -> Away:
        self._drop(connection)
        return self._lost(failure, asked)

    def _lost(self, failure: Exception, asked: int = 0) -> Away:
        return self._standing.lost(session.reason(failure), gone=session.gone(failure), asked=asked)

    def _drop(self, connection: Connection) -> None:
        connection.terminate()
        self._connection = None

    def _back(self) -> None:
        there = "there" if self._written == self._number else "not there"
        self._standing.back(**({} if self._sent is None else {"last_group": there}))

    async def _keep(self) -> None:
        """Watches the session while nothing is written, and restores it when it is lost."""
        pinged = monotonic()
        while not self._standing.ended:
            await asyncio.sleep(_LOOK_SECONDS)
            connection = self._connection
            quiet = connection is not None and not connection.is_closed() and monotonic() - pinged < _PING_SECONDS
            if quiet or self._turn.locked():  # the commit that has the turn notices
                continue
            pinged = monotonic()
            with suppress(InternalError):
                await self._ping()

    async def _ping(self) -> None:
        async with self._turn:
            connection = await self._there()
            await self._ask(_ANSWER_SECONDS, connection, self._look(connection))

    async def _look(self, connection: Connection) -> None:
        if await connection.fetchval("SELECT epoch FROM store") != self.epoch:
            raise Away("it has another writer")


def _who() -> str:
    name = f"process {os.getpid()} on {socket.gethostname()}"
    return name.encode("ascii", "backslashreplace").decode()
