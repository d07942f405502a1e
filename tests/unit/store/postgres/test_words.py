"""What is said of failures, and which of them pass."""

from __future__ import annotations

import ssl

import asyncpg
import pytest

from services.store.providers import postgres_session as session


@pytest.mark.parametrize(
    "failure",
    [
        asyncpg.AdminShutdownError("terminating connection due to administrator command"),
        asyncpg.CannotConnectNowError("the database system is starting up"),
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        asyncpg.TooManyConnectionsError("sorry, too many clients already"),
        asyncpg.DiskFullError("could not extend file"),
        asyncpg.ReadOnlySQLTransactionError("cannot execute UPDATE in a read-only transaction"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
        asyncpg.exceptions.TargetServerAttributeNotMatched("None of the hosts match"),
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError(),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_passes(failure: Exception) -> None:
    """Another session may do it later; until then the database is away, for a reason in plain words."""
    assert session.lost(failure)
    assert "state 12" not in session.reason(failure)
    assert session.reason(failure)


def test_a_server_that_is_away() -> None:
    """A server that answers that it cannot is not said to be away."""
    assert session.gone(asyncpg.AdminShutdownError("bye"))
    assert session.gone(ConnectionResetError())
    assert not session.gone(asyncpg.DiskFullError("could not extend file"))


def test_a_server_that_is_not_there_yet() -> None:
    """It is waited for at the start; what is wrong with the URL, or the files that it names, is told at once."""
    assert session.absent(ConnectionRefusedError())
    assert session.absent(OSError("Multiple exceptions: [Errno 111] Connect call failed"))
    assert session.absent(asyncpg.CannotConnectNowError("the database system is starting up"))
    assert not session.absent(asyncpg.exceptions.ClientConfigurationError("sslmode"))
    assert not session.absent(ssl.SSLCertVerificationError("self-signed"))
    assert not session.absent(FileNotFoundError("ca.crt"))


@pytest.mark.parametrize("failure", [asyncpg.UndefinedTableError("no such table"), ValueError("x"), KeyError("x")])
def test_what_does_not(failure: Exception) -> None:
    """What is wrong here is not waited for."""
    assert not session.lost(failure)


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql:///x?host=/run/postgresql", ["postgresql:///x?host=/run/postgresql"]),
        ("postgresql://me@db/x?passfile=/a", ["postgresql://me@db/x?passfile=/a"]),
        (
            "postgresql://me:a,b@one:1,[::1]:2,three/x?sslmode=require&passfile=/a",
            [f"postgresql://me:a,b@{host}/x?sslmode=require&passfile=/a" for host in ("one:1", "[::1]:2", "three")],
        ),
    ],
)
def test_the_hosts_of_a_url(url: str, each: list[str]) -> None:
    """All else in it is as it was."""
    assert session.hosts(url) == each


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db:5432/x?sslmode=require&password=secret", "postgresql://me@db:5432/x"),
        ("postgres://db,other:5433/x", "postgresql://db,other:5433/x"),
        ("postgresql:///x?host=/run/postgresql", "postgresql:///x"),
        ("postgresql://me:se@cret@db/x", "postgresql://me@db/x"),
        ("postgresql://[::1/x", "postgresql://…"),
    ],
)
def test_what_is_shown_of_a_url(url: str, shown: str) -> None:
    """Where the database is, and nothing that is secret."""
    assert session.shown(url) == shown
