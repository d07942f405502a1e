from __future__ import annotations

import asyncio
import errno
import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from services.gateway.transport.listening import listen_at

V4, V6 = "0.0.0.0", "::"


class _Machine:
    """Gives servers, but for what it is said to lack; chooses ports in ascending order."""

    def __init__(self, **lacks: int | None) -> None:
        self.lacks = lacks  # "v4" or "v6" → errno, None for a server without sockets
        self.taken: set[tuple[str, int]] = set()
        self.serving: list[tuple[str, int]] = []
        self._next = 40000

    async def listen(self, host: str, port: int) -> Any:
        family = "v6" if ":" in host else "v4"
        code = self.lacks.get(family, 0)
        if code is None:
            return SimpleNamespace(sockets=[])
        if code or (host, port) in self.taken:
            code = code or errno.EADDRINUSE
            raise OSError(code, os.strerror(code))
        if not port:
            self._next += 1
        here = (host, port or self._next)
        self.serving.append(here)
        own = SimpleNamespace(getsockname=lambda: here)
        return SimpleNamespace(sockets=[own], close=lambda: self.serving.remove(here))


def _listen(machine: _Machine, host: str = "", port: int = 0) -> list[tuple[str, int]]:
    asyncio.run(listen_at(host, port, machine.listen))
    return machine.serving


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["", "localhost"])
def test_both_families_have_one_port(host: str) -> None:
    """Without a port of its own, on the loop that services run on: everywhere, or at the addresses of a name."""

    async def serve() -> list[tuple[str, int]]:
        loop = asyncio.get_running_loop()
        servers = await listen_at(host, 0, lambda host, port: loop.create_server(asyncio.Protocol, host, port))
        names = [server.sockets[0].getsockname()[:2] for server in servers]
        for server in servers:
            server.close()
        return names

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        serving = runner.run(serve())
    assert len({port for _, port in serving}) == 1
    if not host:
        assert [address for address, _ in serving] == ([V4, V6] if _has_ipv6() else [V4])


@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, None])
@pytest.mark.parametrize(("lacks", "left"), [("v6", V4), ("v4", V6)])
def test_a_machine_with_one_family(lacks: str, left: str, code: int | None) -> None:
    """Serves that one, however the kernel says that there is no other."""
    assert _listen(_Machine(**{lacks: code}), port=5672) == [(left, 5672)]


def test_a_port_that_one_family_has_given_away() -> None:
    """Is not the one: another is tried, and nothing stays of the first."""
    machine = _Machine()
    machine.taken = {(V6, 40001), (V6, 40002)}
    assert _listen(machine) == [(V4, 40003), (V6, 40003)]


@pytest.mark.parametrize("family", [V4, V6])
def test_a_port_that_is_taken(family: str) -> None:
    """The one that was asked for is free at all addresses, or the gateway does not start."""
    machine = _Machine()
    machine.taken = {(family, 5672)}
    with pytest.raises(OSError, match="in use"):
        _listen(machine, port=5672)
    assert machine.serving == []


@pytest.mark.parametrize(("host", "lacks"), [("192.0.2.1", "v4"), ("::1", "v6")])
@pytest.mark.parametrize("code", [errno.EADDRNOTAVAIL, None])
def test_an_address_that_the_machine_has_not(host: str, lacks: str, code: int | None) -> None:
    """Cannot be listened on."""
    with pytest.raises(OSError, match=r"assign|none of the addresses"):
        _listen(_Machine(**{lacks: code}), host, 5672)
