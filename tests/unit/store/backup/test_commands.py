from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.storing import commands
from services.common import secret


async def test_restore_wants_no_secret(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pod that has the store's disk and settings, but not the secret for calls: it calls no service."""
    monkeypatch.setenv("HOPLINE_SECRET_FILE", "/proc/nobody/secret")
    monkeypatch.setattr(secret, "_find", secret._find)  # as it was, for the tests behind this one
    run = CliRunner().invoke
    folder = tmp_path / "restored"
    result = await asyncio.to_thread(run, commands(lambda: None), ["restore", str(file), "--to", str(folder)])
    assert result.exit_code == 0, result.output
    assert "generation 2" in result.output
