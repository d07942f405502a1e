"""What is wrong with a database is said in a line at the start; what is secret of it is not."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import structlog

from services.common.errors import InternalError
from services.store.provider import Changes
from services.store.providers import postgres_schema, postgres_session
from services.store.providers.postgres import PostgresProvider
from tests.support.postgres import PASSWORD, Cluster


async def refused(url: str) -> str:
    """Why it cannot be opened: one line."""
    provider = PostgresProvider(Path(), url)
    with pytest.raises(InternalError) as error:
        await provider.open()
    await provider.close()
    text = error.value.text
    assert "\n" not in text
    assert PASSWORD not in text
    return text


async def test_nobody_listens() -> None:
    """It is said where, and that nothing answers there."""
    text = await refused(f"postgresql://hopline:{PASSWORD}@127.0.0.1:1/x")
    assert text == "cannot use postgresql://hopline@127.0.0.1:1/x: connection refused: does it run?"


async def test_no_such_machine() -> None:
    """An unknown host name is reported as such."""
    assert "cannot use postgresql://nowhere.invalid/x: " in await refused("postgresql://nowhere.invalid/x")


async def test_no_such_database(postgres: Cluster) -> None:
    """In the words of the server."""
    assert 'database "missing" does not exist' in await refused(postgres.url("missing"))


async def test_an_option_that_makes_no_sense(url: str) -> None:
    """As a server that takes it for a setting of its own says."""
    assert "sslmod" in await refused(f"{url}&sslmod=require")
    assert "sslmode" in await refused(url.replace("disable", "perhaps"))


async def test_a_standby(postgres: Cluster, url: str) -> None:
    """A server that takes no writes is not the one that is wanted."""
    postgres.sql(f"ALTER DATABASE {url.rpartition('/')[2].partition('?')[0]} SET default_transaction_read_only = on")
    assert "none of its servers takes writes" in await refused(url)


async def test_of_several_hosts_the_one_that_writes(postgres: Cluster, url: str) -> None:
    """A URL may have several: whichever is the primary serves."""
    provider = PostgresProvider(Path(), url.replace("127.0.0.1", "127.0.0.1:1,127.0.0.1"))
    await provider.open()
    await provider.commit(Changes(origin=3))
    assert await provider.last_origin() == 3
    await provider.close()


async def test_a_host_that_says_nothing(postgres: Cluster, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one in the URL is asked all the same: each has its own time. Where no other answers, that is said."""
    monkeypatch.setattr(postgres_session, "CONNECT_SECONDS", 5.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        provider = PostgresProvider(Path(), url.replace("127.0.0.1", f"127.0.0.1:{port},127.0.0.1"))
        await provider.open()
        await provider.close()
        monkeypatch.setattr(postgres_session, "CONNECT_SECONDS", 1.0)
        assert "no answer within 1 seconds" in await refused(f"postgresql://127.0.0.1:{port},127.0.0.1:{port}/x")


@pytest.mark.parametrize("patient", [True, False])
async def test_a_server_that_starts(url: str, monkeypatch: pytest.MonkeyPatch, patient: bool) -> None:
    """Of a machine that comes up all begin at once: a server that says that it recovers is waited for."""
    connect, attempts = postgres_session.connect, iter(range(3))

    async def recovering(*arguments: Any, **more: Any) -> Any:
        if next(attempts, None) is not None:
            raise asyncpg.CannotConnectNowError("the database system is starting up")
        return await connect(*arguments, **more)

    monkeypatch.setattr(postgres_session, "connect", recovering)
    provider = PostgresProvider(Path(), url)
    if patient:
        await provider.open()
        await provider.close()
    else:
        with pytest.raises(InternalError, match="the database system is starting up"):
            await provider.open(patient=False)


async def test_a_newer_schema(url: str, provider: PostgresProvider) -> None:
    """Data of a later release is not touched."""
    connection = await asyncpg.connect(url)
    await connection.execute("INSERT INTO hopline.migration (version) VALUES (1000)")
    await connection.close()
    known = len(postgres_schema.MIGRATIONS)
    assert f"written by a newer release (schema 1000, known: {known})" in await refused(url)


async def test_the_schema_goes_forwards(url: str, provider: PostgresProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration that is appended is carried out once on data that is there, and is said."""
    await provider.commit(Changes(origin=7))
    await provider.close()
    known = len(postgres_schema.MIGRATIONS)
    later = [*postgres_schema.MIGRATIONS, "ALTER TABLE lease ADD COLUMN mood text", "CREATE TABLE another ()"]
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", later)
    for said in ([known], []):
        provider = PostgresProvider(Path(), url)
        with structlog.testing.capture_logs() as logs:
            await provider.open()
        assert [line["schema"] for line in logs if "schema" in line] == said
        assert await provider.last_origin() == 7
        await provider.close()


async def test_beside_other_things(url: str) -> None:
    """A schema that its owner has made is used, and what else the database has is left alone."""
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE SCHEMA hopline; CREATE TABLE public.content (); CREATE TABLE public.store ()")
    provider = PostgresProvider(Path(), url)
    await provider.open()
    await provider.commit(Changes(contents={1: b"x"}))
    await provider.close()
    assert await connection.fetchval("SELECT count(*) FROM public.content") == 0
    assert await connection.fetchval("SELECT count(*) FROM hopline.content") == 1
    await connection.close()


async def test_a_commit_waits_for_the_disk(url: str, provider: PostgresProvider) -> None:
    """With any defaults of the database, what is answered is on disk."""
    connection = await asyncpg.connect(url)
    name = url.rpartition("/")[2].partition("?")[0]
    await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    await connection.execute(f"ALTER DATABASE {name} SET statement_timeout = 20")
    await connection.close()
    await provider.close()
    await provider.open()
    session = provider._writer._connection
    assert await session.fetchval("SHOW synchronous_commit") == "on"
    assert await session.fetchval("SHOW statement_timeout") == "0"


async def test_tls_and_a_password_from_files(postgres: Cluster, url: str, tmp_path: Path) -> None:
    """With the certificate that proves the server and the password, both in files; without either it is said why."""
    root = postgres.guard()
    passwords, wrong = tmp_path / "passwords", tmp_path / "wrong"
    passwords.write_text(f"*:*:*:guarded:{PASSWORD}\n")
    wrong.write_text("*:*:*:guarded:guess\n")
    for path in (passwords, wrong):
        path.chmod(0o600)
    guarded = url.replace("hopline@", "guarded@").partition("?")[0]
    provider = PostgresProvider(Path(), f"{guarded}?sslmode=verify-full&sslrootcert={root}&passfile={passwords}")
    await provider.open()
    assert await provider._writer._connection.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    await provider.close()
    assert "password authentication failed" in await refused(
        f"{guarded}?sslmode=verify-full&sslrootcert={root}&passfile={wrong}"
    )
    assert "pg_hba.conf rejects" in await refused(f"{guarded}?sslmode=disable&passfile={passwords}")
    other = tmp_path / "other.crt"
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", other)
    assert "certificate" in await refused(f"{guarded}?sslmode=verify-full&sslrootcert={other}&passfile={passwords}")
