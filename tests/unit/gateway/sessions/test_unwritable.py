"""Publishers that wait while the store cannot write."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

from services.gateway.connections.blocked import Blocked
from services.gateway.sessions.unwritable import Unwritable


def test_one_that_sends_too_much_meanwhile() -> None:
    """It was told, and is read on because its protocol can hold it back; it goes on as if it had not heard of that."""
    table: Any = SimpleNamespace(listeners=[], unwritable="low on disk")
    queues = cast("Any", {1: SimpleNamespace(durable=True), 2: SimpleNamespace(durable=False)})
    unwritable, connection = Unwritable(table, Mock(), queues), Mock(lost=False)
    connection.blocked = Blocked(connection)
    unwritable.published(connection, [1])
    assert not connection.hold.called
    connection.engine.holds_back = False
    unwritable.published(connection, [2])
    assert not connection.hold.called
    unwritable.published(connection, [1])
    connection.hold.assert_called_once_with(unwritable)
    connection.engine.blocked.assert_called_once_with("low on disk")
