"""Clients that publish to full queues, and are told."""

from __future__ import annotations

from unittest.mock import Mock, call

from services.gateway.connections.blocked import Blocked


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
