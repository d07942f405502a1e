"""A client that asks for a virtual host when it has signed in."""

from __future__ import annotations

from unittest.mock import Mock

from services.gateway import vocabulary as v
from services.gateway.connections.opening import open_connection


def test_who_is_lost() -> None:
    """A login may come to its end in the turn in which its connection was lost: it is counted nowhere."""
    connection = Mock(lost=True)
    connection.broker.topology.virtual_hosts = {"/"}
    open_connection(connection, v.Open(0, "/"))
    assert connection.mock_calls == []
