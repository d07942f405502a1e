"""Finds out which process writes to the database, by the database's list of sessions: for processes that stand by.

A writer is dead when its sessions have ended, which the server notices at once where a process dies. A process that
stands still has its sessions; but they do nothing, not even the look at who writes that is due every second. Who has
much to send says otherwise meanwhile that it lives (`postgres_signs.py`).
"""

from __future__ import annotations

from typing import Any

from services.common.errors import InternalError
from services.common.restored import utc
from services.store.providers import postgres_session as session
from services.store.providers import standstill
from services.store.providers.postgres_schema import SCHEMA
from services.store.providers.postgres_session import Connection, within

_ANSWER_SECONDS = 5.0

# A bigint that is locked is shown as its two halves. One that waits for its client, amid a query too, does nothing. Of
# sessions of others than its own user it is not shown what they do, nor of any where the server does not track that:
# those are alive.
_SESSIONS = """
    SELECT a.pid, coalesce(
        (a.state NOT LIKE 'idle%' AND a.wait_event_type IS DISTINCT FROM 'Client')
        OR a.state_change > clock_timestamp() - make_interval(secs => $1), true
    ) AS lives
    FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) JOIN store AS s
        ON (l.classid::bigint << 32 | l.objid::bigint) = s.owner
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.mode = 'ShareLock'
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_WRITER = f"WITH o AS ({_SESSIONS}) SELECT who, since, EXISTS (SELECT FROM o WHERE lives) AS lives FROM store"  # noqa: S608 - ours
_END = "SELECT count(pg_terminate_backend(pid)) FROM o WHERE NOT EXISTS (SELECT FROM o WHERE lives)"
_EVICT = f"WITH o AS ({_SESSIONS}) {_END}"


class Lookout:
    """Watches the database at `url`; it has a session of its own while it is used."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None

    async def writer(self) -> str:
        """The name of the process that writes there, "" for none. Raises as Elsewhere.occupied."""
        with session.usable(self._url):
            connection = await self._connected()
            try:
                return await within(_ANSWER_SECONDS, connection, _writer(connection))
            except BaseException:
                connection.terminate()
                raise

    async def close(self) -> None:
        """Closes the session, until it is used again."""
        connection, self._connection = self._connection, None
        await session.close(connection)

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await session.connect(self._url)
        return self._connection


async def _writer(connection: Connection) -> str:
    if not await connection.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.store"):
        return ""
    row = await connection.fetchrow(_WRITER, standstill.SILENT_SECONDS)
    return told(row) if row["lives"] else ""


async def evict(connection: Connection) -> None:
    """Ends the sessions of a writer that does nothing any more, and so whatever they had begun."""
    await connection.fetchval(_EVICT, standstill.SILENT_SECONDS)


async def other(connection: Connection, url: str) -> InternalError:
    """The error for a process that may not write: names the one that does."""
    who = told(await connection.fetchrow("SELECT who, since FROM store"))
    return InternalError(f"another store process ({who}) writes to {session.shown(url)}: stop it, or this one")


def told(row: Any) -> str:  # noqa: ANN401 - asyncpg has no types
    """The writer in a row of the table `store`, as text."""
    return f"{row['who']} since {utc(int(row['since'].timestamp() * 1000))}"
