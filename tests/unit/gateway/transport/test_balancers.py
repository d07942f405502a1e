"""Balancers that the settings name by name."""

from __future__ import annotations

import socket
from ipaddress import ip_network
from typing import Any

import pytest

from services.common.runtime import Tasks
from services.gateway.transport import balancers as module
from services.gateway.transport.balancers import Balancers

NAME = "balancer.hopline.internal"


class Names:
    """In place of the machine's resolver."""

    def __init__(self) -> None:
        self.places: dict[str, list[str]] = {}
        self.asked: list[str] = []

    async def getaddrinfo(self, name: str) -> list[Any]:
        self.asked.append(name)
        if name not in self.places:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(None, None, None, "", (place, 0)) for place in self.places[name]]


async def test_a_name_is_looked_up_as_connections_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is believed once it has an address, not when it is another's, and no longer when it has none."""
    names, tasks = Names(), Tasks()
    monkeypatch.setattr(module, "_EVERY", 0.0)
    monkeypatch.setattr(module, "_getaddrinfo", names.getaddrinfo)
    balancers = Balancers([NAME], tasks)
    assert balancers
    for places, believed in (([], False), (["10.0.0.7", "fd00::7"], True), (["10.0.0.8"], False)):
        names.places = {NAME: places} if places else {}
        balancers.has("10.0.0.7")
        await tasks.finish(5)
        assert balancers.has("10.0.0.7") is balancers.has("::ffff:10.0.0.7") is believed
        assert not balancers.has("10.0.0.9")
        assert not balancers.has("")
        await tasks.finish(5)


async def test_a_resolver_that_is_away_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is believed until it is known better."""
    names, tasks = Names(), Tasks()
    monkeypatch.setattr(module, "_EVERY", 0.0)
    monkeypatch.setattr(module, "_getaddrinfo", names.getaddrinfo)
    balancers = Balancers([NAME], tasks)
    names.places = {NAME: ["10.0.0.7"]}
    balancers.has("10.0.0.7")
    await tasks.finish(5)

    async def away(_: str) -> list[Any]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(module, "_getaddrinfo", away)
    balancers.has("10.0.0.7")
    await tasks.finish(5)
    assert balancers.has("10.0.0.7")
    await tasks.finish(5)


async def test_not_for_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come, names are looked up once a second; where there are none, never."""
    names, tasks = Names(), Tasks()
    monkeypatch.setattr(module, "_getaddrinfo", names.getaddrinfo)
    balancers = Balancers([NAME], tasks)
    for _ in range(100):
        balancers.has("10.0.0.7")
    await tasks.finish(5)
    assert names.asked == [NAME]
    others = Balancers([ip_network("10.0.0.0/8")], tasks)
    assert others.has("10.0.0.7")
    assert names.asked == [NAME]
    assert not Balancers([], tasks)
