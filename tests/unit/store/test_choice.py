"""Which provider the settings name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from services.common import plugins
from services.common.config import Settings
from services.common.errors import InternalError
from services.store.choice import choose
from services.store.providers.postgres import PostgresProvider
from services.store.providers.sqlite import SQLiteProvider

_URL = "postgresql://hopline:tell-nobody@db.example/hopline"


def test_sqlite_unless_told_otherwise(tmp_path: Path) -> None:
    """Without a setting the store is a file."""
    chosen = choose(Settings())
    assert chosen.name == "sqlite"
    assert isinstance(chosen.make(tmp_path), SQLiteProvider)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "PostgreSQL"])
def test_by_url(scheme: str, tmp_path: Path) -> None:
    """The URL's scheme names the provider, which is given the URL."""
    chosen = choose(Settings(store_url=_URL.replace("postgresql", scheme)))
    assert chosen.name == "postgres"
    assert isinstance(chosen.make(tmp_path), PostgresProvider)


@pytest.mark.parametrize("url", ["mysql://root:tell-nobody@db/x", "db.example:tell-nobody", "://"])
def test_an_unknown_scheme(url: str) -> None:
    """It is said which there are, and nothing of what may be a secret."""
    with pytest.raises(InternalError, match=r"postgresql://… or postgres://… or nats://… is wanted") as refused:
        choose(Settings(store_url=url))
    assert "tell-nobody" not in str(refused.value)


def test_a_provider_beside_the_url() -> None:
    """Two that do not go together are named; the same one twice is fine."""
    with pytest.raises(InternalError, match=r"HOPLINE_STORE_PROVIDER=sqlite and HOPLINE_STORE_URL=postgresql://…"):
        choose(Settings(store_provider="sqlite", store_url=_URL))
    assert choose(Settings(store_provider="postgres", store_url=_URL)).name == "postgres"


def test_a_provider_that_wants_a_url(tmp_path: Path) -> None:
    """Named without one, it says which setting is missing."""
    with pytest.raises(InternalError, match="HOPLINE_STORE_URL=postgresql://"):
        choose(Settings(store_provider="postgres")).make(tmp_path)


def test_a_driver_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said what to install."""

    def missing(*_: str) -> None:
        raise ModuleNotFoundError("No module named 'asyncpg'", name="asyncpg")

    monkeypatch.setattr(plugins, "load", missing)
    with pytest.raises(InternalError, match=r"needs asyncpg.*pip install 'hopline\[postgres\]'"):
        choose(Settings(store_url=_URL)).make(tmp_path)


def test_the_driver_is_imported_only_when_it_is_chosen() -> None:
    """A store on SQLite starts without it, installed or not."""
    program = """
import sys
sys.modules["asyncpg"] = None
from pathlib import Path
from services.common.config import Settings
from services.store.service import Service
Service(Settings())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_url_is_never_shown() -> None:
    """Settings that are printed do not have the password in them."""
    assert "tell-nobody" not in repr(Settings(store_url=_URL))
