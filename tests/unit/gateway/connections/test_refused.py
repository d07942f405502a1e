"""Who is refused by one limit takes no place of another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from services.common.errors import NotAllowed
from services.common.limit_rules import parse
from services.common.limits import VIRTUAL_HOST, Limited, Limits, Subject, record_of
from services.gateway.connections.by_rules import ByRules
from services.gateway.connections.doors import Doors
from services.gateway.connections.former import Former
from services.gateway.connections.limited import LimitedConnections
from services.gateway.connections.listener import Listener


class Peer(SimpleNamespace):
    __hash__ = object.__hash__


class Full:
    """An entrance that takes one user only."""

    def enter(self, connection: Any) -> None:
        if connection.user != "anna":
            raise NotAllowed("its port is full")

    def leave(self, _connection: Any) -> None:
        """Nothing is counted."""


def _listener(rules: str) -> Any:
    """With room for two connections in all, and with one virtual host."""
    limits = Limits()
    limits.apply(record_of(Limited(Subject(VIRTUAL_HOST, "/"), {"max-connections": 2})))
    listener: Any = Listener.__new__(Listener)
    listener.limited, listener.by_rules, listener.doors = (
        LimitedConnections(limits, Former()),
        ByRules(Former()),
        Doors(2, 1024),
    )
    listener.by_rules._rules = {None: parse(rules)}
    principal = SimpleNamespace(groups=frozenset())
    listener.permits = SimpleNamespace(access=SimpleNamespace(rules=SimpleNamespace(principal=lambda _user: principal)))
    listener._connections = {}
    return listener


def _come(listener: Any, user: str, entrance: Any = None) -> None:
    login = SimpleNamespace(port="amqp", principal=SimpleNamespace(groups=frozenset()))
    peer = Peer(user=user, sessions={}, login=login)
    listener._connections[peer] = entrance or SimpleNamespace(enter=lambda _: None, leave=lambda _: None)
    listener.enter(peer, "/")


async def test_who_is_refused_takes_no_place() -> None:
    """Of the virtual host's, though its socket stays a while; others come in."""
    listener = _listener("CLT mallory BLOCK")
    for _ in range(4):
        with pytest.raises(NotAllowed, match="blocked"):
            _come(listener, "mallory")
    for _ in range(2):
        _come(listener, "anna")
    assert listener.doors.inside == 2


async def test_how_often_counts_who_came_in() -> None:
    """Not who was refused by another limit."""
    listener = _listener("CLT ALL connection_frequency_limit=1/h")
    with pytest.raises(NotAllowed, match="full"):
        _come(listener, "bert", Full())
    _come(listener, "bert")
    _come(listener, "anna")
    with pytest.raises(NotAllowed, match=r"limit of connections \(2\)"):
        _come(listener, "carl")
    listener.doors = Doors(0, 1024)
    listener.limited = LimitedConnections(Limits(), Former())
    _come(listener, "carl")
