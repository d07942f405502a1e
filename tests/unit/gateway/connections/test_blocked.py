"""Clients that publish to full queues, and are told."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import Mock, call

import pytest

from services.common.clients.pressure import Congestion, Held, Pressure
from services.gateway.connections.blocked import Blocked
from services.gateway.connections.connection import Connection


def test_by_their_engine() -> None:
    """An engine that can hold its peer back has it read on, until the peer sends too much all the same."""
    connection = Mock()
    connection.engine.holds_back = True
    connection.lost = False
    blocked = Blocked(connection)
    blocked.block("memory", "low on memory")
    assert (blocked.told, connection.hold.mock_calls) == (True, [])
    connection.engine.holds_back = False
    blocked.block("memory", "low on memory")
    assert connection.hold.mock_calls == [call("memory")]
    blocked.unblock("memory")
    assert connection.engine.blocked.mock_calls == [call("low on memory"), call(None)]
    assert connection.release.mock_calls == [call("memory")]


@pytest.mark.parametrize("state", list(Congestion))
@pytest.mark.parametrize("holds_back", [False, True])
def test_by_two_processes(state: Congestion, *, holds_back: bool) -> None:
    """What was on its way to one came while the other is full: room in one of them is not enough."""
    connection, held, holds, one, other = Mock(), Held(), set[object](), object(), object()
    connection.lost, connection.engine.holds_back = False, holds_back
    connection.hold, connection.release = holds.add, holds.discard
    connection.blocked, connection.broker.publisher.when_relieved = Blocked(connection), held.add
    for link in (one, other):
        Connection.congested(connection, Pressure(state, cast("Any", link), (1,)))
    held.let_go(cast("Any", other), state)
    assert holds or connection.blocked.told
    held.let_go(cast("Any", one), state)
    assert not holds
    assert not connection.blocked.told
