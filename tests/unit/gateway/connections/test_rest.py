"""What was read of a client and is not looked at yet."""

from __future__ import annotations

from typing import Any

from tests.unit.gateway.connections.test_gone import Listener


async def test_a_rest_is_no_excuse() -> None:
    """A client not read for want of room, with bytes left over, may end for its silence; not one waiting for queues."""
    listener: Any = Listener()
    connection = listener.accept()
    connection.hold(listener.incoming)
    connection.hold(connection.rest)
    assert not connection.held_but(listener.incoming)
    connection.hold("the queues")
    assert connection.held_but(listener.incoming)
    assert connection.held_but(connection.rest)
