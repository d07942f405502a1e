"""What hosts are called."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from services.gateway.sign_in import host_names
from services.gateway.sign_in.host_names import host_name

ADDRESS = "10.0.0.7"


def called(monkeypatch: pytest.MonkeyPatch, name: str, *addresses: str) -> None:
    """The address resolves to that name, and the name to that address."""

    def named(address: tuple[str, int], flags: int) -> tuple[str, str]:
        assert (address[0], flags) == (ADDRESS, socket.NI_NAMEREQD)
        return name, "0"

    def found(host: str, _port: None) -> list[Any]:
        assert host == name
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in addresses]

    monkeypatch.setattr(host_names.socket, "getnameinfo", named)
    monkeypatch.setattr(host_names.socket, "getaddrinfo", found)


@pytest.mark.parametrize("addresses", [[ADDRESS], ["10.0.0.6", ADDRESS], ["fe80::1%eth0", f"::ffff:{ADDRESS}"]])
async def test_a_name(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    """Is what the resolver says of the address, and of the name."""
    called(monkeypatch, "desk7.example", *addresses)
    assert await host_name(ADDRESS) == "desk7.example"


@pytest.mark.parametrize("addresses", [["10.0.0.8"], []])
async def test_the_name_of_another_address(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    """Counts for nothing: the owner of an address can give it any name."""
    called(monkeypatch, "trusted.example", *addresses)
    assert await host_name(ADDRESS) == ""


async def test_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none: then rules that ask for it deny."""

    def named(*_: Any) -> tuple[str, str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(host_names.socket, "getnameinfo", named)
    assert await host_name(ADDRESS) == ""


async def test_a_resolver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its look-up is waited for shortly, however many ask, and by no other client: passwords have other threads."""
    answers = threading.Event()

    def named(*_: Any) -> tuple[str, str]:
        answers.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(host_names, "_PATIENCE", 0.05)
    monkeypatch.setattr(host_names.socket, "getnameinfo", named)
    try:
        assert set(await asyncio.gather(*(host_name(ADDRESS) for _ in range(50)))) == {""}
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(str, 1) == "1"
    finally:
        answers.set()
