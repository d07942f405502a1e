"""Connections to the database: how they are made and bounded in time, and their failures in words for people."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlunsplit

import asyncpg

from services.common.errors import InternalError
from services.store.provider import Unreachable
from services.store.providers.postgres_schema import SCHEMA
from services.store.several_hosts import split

T = TypeVar("T")
Connection = Any  # asyncpg's: it has no types

CONNECT_SECONDS = 5.0  # for each host
MEND = "start the database, or mend the way to it; the store goes on by itself"
OLDEST = 13  # of PostgreSQL's releases

_NO_PRIMARY = asyncpg.exceptions.TargetServerAttributeNotMatched

# They override what the database's owner has set for all sessions. A client that vanishes is noticed within seconds:
# other processes wait for the locks of its session.
_SETTINGS = {
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "lock_timeout": "5000",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "jit": "off",
}
# Statements of groups are planned once, perhaps while their tables are empty, and tables grow: so always by index.
_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_SET = """
    SELECT set_config(s.name, w.value, false) FROM unnest($1::text[], $2::text[]) AS w (name, value)
    JOIN pg_settings s ON s.name = w.name
"""


async def connect(url: str, *, writes: bool = False) -> Connection:
    """A session with the primary. Raises an error for which `lost` is true, or one that says the URL is invalid."""
    connection = await _primary(hosts(url))
    try:
        await within(CONNECT_SECONDS, connection, _prepare(connection, _SETTINGS | (_PLANS if writes else {})))
    except BaseException:
        connection.terminate()
        raise
    return connection


def hosts(url: str) -> list[str]:
    """The same URL for each of the hosts in front of its path; hosts that are named elsewhere stay together."""
    parts = split(url)
    user, at, together = parts.netloc.rpartition("@")
    if "," not in together:
        return [url]
    return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in together.split(",")]


async def _primary(urls: Sequence[str]) -> Connection:
    """Of those that the URLs name, the one that takes writes now. asyncpg has one time for all hosts of a URL."""
    failures: list[Exception] = []
    for url in urls:
        try:
            return await asyncpg.connect(
                url,
                timeout=CONNECT_SECONDS,
                target_session_attrs="read-write",
                server_settings={"application_name": "hopline store"},
            )
        except (OSError, asyncpg.CannotConnectNowError, _NO_PRIMARY) as failure:
            failures.append(failure)
    # As asyncpg: what keeps the others from being the primary tells more.
    raise ([each for each in failures if not isinstance(each, _NO_PRIMARY)] or failures)[-1]


async def _prepare(connection: Connection, settings: dict[str, str]) -> None:
    await connection.execute(f"SET statement_timeout = 0; SET search_path = {SCHEMA}")
    await connection.fetch(_SET, list(settings), list(settings.values()))
    if await connection.fetchval("SHOW synchronous_commit") == "off":  # an answer must mean that it is on disk
        await connection.execute("SET synchronous_commit = on")


async def within(seconds: float, connection: Connection, work: Awaitable[T]) -> T:
    """The result of `work` on `connection`; without an answer in time it cuts the connection and raises TimeoutError.

    It does not ask the server to cancel: a cancelled commit that waits for a standby would be answered as done.
    """
    late = False

    def cut() -> None:
        nonlocal late
        late = True
        connection.terminate()

    handle = asyncio.get_running_loop().call_later(seconds, cut)
    try:
        return await work
    except Exception as failure:
        if late:
            raise TimeoutError(f"no answer for {seconds:.0f} seconds") from failure
        raise
    finally:
        handle.cancel()


async def close(connection: Connection | None) -> None:
    """Closes the connection properly if that takes no time, else cuts it."""
    if connection is None or connection.is_closed():
        return
    try:
        await connection.close(timeout=2)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()


# Error codes of a database that shuts down, starts, or is at its limits; 25006 is from a former primary.
_PASSING = ("08", "57P", "53", "55P03", "25006", "40")


def lost(failure: BaseException) -> bool:
    """Whether another connection may later do what this one has failed to do."""
    if isinstance(failure, asyncpg.PostgresError):
        return str(failure.sqlstate or "").startswith(_PASSING)
    return isinstance(failure, (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError))


def gone(failure: BaseException) -> bool:
    """Whether the server is away, or starts or stops; else it is there, and refuses."""
    if isinstance(failure, asyncpg.PostgresError):
        return str(failure.sqlstate or "").startswith(_PASSING[:2])
    return lost(failure)


# Of the URL, or the files that it names: no time mends it.
_LASTING = (ValueError, ssl.SSLError, FileNotFoundError, PermissionError)


def absent(failure: BaseException) -> bool:
    """Whether nobody answers yet, or for now, where the server should be."""
    return gone(failure) and not isinstance(failure, _LASTING)


def starting(failure: BaseException) -> bool:
    """Whether the server says that it is starting."""
    return isinstance(failure, asyncpg.CannotConnectNowError)


def reason(failure: BaseException) -> str:
    """The reason in a line, for people."""
    if isinstance(failure, _NO_PRIMARY):
        return "none of its servers takes writes: is there only a standby?"
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {failure.verify_message}"
    if isinstance(failure, TimeoutError) and not str(failure):
        return f"no answer within {CONNECT_SECONDS:.0f} seconds"
    if type(failure) is asyncpg.InternalClientError:  # the server's last words came amid its answer
        return "the connection has ended"
    if isinstance(failure, ConnectionRefusedError):
        return "connection refused: does it run?"
    text = str(failure) or type(failure).__name__
    return " ".join(text.split("\n", maxsplit=1)[0].split())


def shown(url: str) -> str:
    """The URL without its secrets and options."""
    try:
        parts = split(url)
        user, _, hosts = parts.netloc.rpartition("@")
    except ValueError:
        return "postgresql://…"
    name = f"{user.partition(':')[0]}@" if user else ""
    return f"postgresql://{name}{hosts}{parts.path}"


@contextmanager
def usable(url: str) -> Iterator[None]:
    """Turns every failure of the database into an InternalError with a plain text; Unreachable where it is absent."""
    try:
        yield
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as failure:
        kind = Unreachable if absent(failure) else InternalError
        raise kind(f"cannot use {shown(url)}: {reason(failure)}") from failure
