"""What hosts are called."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from services.gateway.sign_in import host_names
from services.gateway.sign_in.host_names import host_name


async def test_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is what the resolver says of the address."""
    loop = asyncio.get_running_loop()

    async def named(address: tuple[str, int], flags: int) -> tuple[str, str]:
        assert (address[0], flags) == ("10.0.0.7", socket.NI_NAMEREQD)
        return "desk7.example", "0"

    monkeypatch.setattr(loop, "getnameinfo", named)
    assert await host_name("10.0.0.7") == "desk7.example"


@pytest.mark.parametrize("trouble", ["nobody knows", "nobody answers"])
async def test_none(monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    """Where there is none, and where it is not said soon: then rules that ask for it deny."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(host_names, "_PATIENCE", 0.01)

    async def named(*_: Any) -> tuple[str, str]:
        if trouble == "nobody answers":
            await asyncio.sleep(60)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(loop, "getnameinfo", named)
    assert await host_name("10.0.0.7") == ""
