"""Commands whose answer takes long have a bar, on standard error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from services.__main__ import app
from services.cli import bar, definitions_fetched
from services.common import secret
from services.common.clients.mgmt import MgmtClient
from services.common.clients.placement import PlacementClient
from services.common.clients.store import StoreClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.common.errors import NotFound
from services.store.backup import file
from services.store.backup.restore import Restore

_LONG = 0.3  # seconds


async def _gives_up(*_: Any, **__: Any) -> None:
    await asyncio.sleep(_LONG)
    raise NotFound("there is none")


async def _breaks_off(*_: Any) -> AsyncIterator[None]:
    await _gives_up()
    yield


def _is_busy(*_: Any) -> None:
    time.sleep(_LONG)
    raise OSError("there is none")


def _run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, terminal: str, *command: str) -> Result:
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    monkeypatch.setenv("FORCE_COLOR", terminal)
    monkeypatch.setattr(bar, "_PATIENCE", 0.0)
    result = CliRunner().invoke(app.whole, command)
    secret.use("")
    assert result.exit_code == 1, result.output
    assert "there is none" in result.stderr
    assert result.stdout == ""
    return result


COMMANDS: dict[tuple[str, ...], tuple[str, Any, str, Any]] = {
    ("trace", "order-1"): ("looking up", MgmtClient, "trace", _gives_up),
    ("vhosts", "add", "v"): ("adding", VirtualHostsClient, "create", _gives_up),
    ("vhosts", "delete", "v"): ("deleting", VirtualHostsClient, "delete", _gives_up),
    ("partitions", "move", "3", "queue-2"): ("moving", PlacementClient, "move", _gives_up),
    ("definitions", "export"): ("collecting definitions", MgmtClient, "export_definitions", _gives_up),
    ("definitions", "import", "http://a:b@localhost:1"): (
        "asking for definitions", definitions_fetched, "fetched", _is_busy,
    ),
    ("store", "backup", "a.backup"): ("backing up", StoreClient, "backup", _breaks_off),
    ("store", "verify", "a.backup"): ("reading", file, "verify", _is_busy),
    ("store", "restore", "a.backup", "--to", "new"): ("restoring", Restore, "run", _gives_up),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_bar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Says what is waited for, where somebody looks, and nothing where nobody does; the error comes after it."""
    says, owner, name, does = COMMANDS[command]
    monkeypatch.setattr(owner, name, does)
    monkeypatch.chdir(tmp_path)
    assert says in _run(monkeypatch, tmp_path, "1", *command).stderr
    assert says not in _run(monkeypatch, tmp_path, "", *command).stderr
