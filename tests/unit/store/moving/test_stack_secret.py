"""Commands that move a store to and from a server of the stack's own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from services.common import secret
from tests.support.nats_server import NatsServer


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """The address of a server that lets in who says the secret of a stack, and the setting that names its file."""
    file = tmp_path / "secret"
    secret.use(secret.read_or_make(file))
    server = NatsServer(tmp_path / "nats")
    try:
        await server.start()
        yield server.address, {"HOPLINE_SECRET_FILE": str(file), "HOPLINE_DATA": str(tmp_path / "data")}
    finally:
        secret.use("")
        server.kill()


async def test_it_is_said(filled: Callable[[str], Any], tmp_path: Path, guarded: tuple[str, dict[str, str]]) -> None:
    """By each of them, as by the store: the URL has no credentials of its own."""
    address, settings = guarded
    moves = [
        ("copy", str(await filled("sqlite")), f"{address}/ONE"),
        ("export", f"{address}/ONE", str(tmp_path / "file")),
        ("import", str(tmp_path / "file"), f"{address}/TWO"),
    ]
    for move in moves:
        command = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "services", "store", *move, env={**os.environ, **settings}
        )
        assert await command.wait() == 0
