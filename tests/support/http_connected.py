"""A connection over HTTP without a socket."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from uvicorn.server import ServerState

from services.mgmt.http.bodies import Bodies
from services.mgmt.http.connection import Bounds, Config, HttpConnection
from services.mgmt.http.doors import Doors
from services.mgmt.http.unread import Unread


def http_connected(app: Any, unread: float = 10) -> tuple[HttpConnection, Mock]:
    """To an ASGI application; and its transport, which notes what is done with it."""
    doors = Doors(9, 0, 99)
    bounds = Bounds(doors, Bodies(1 << 20, doors.whose), Unread(1 << 20, doors.whose), 10, unread)
    connection, transport = HttpConnection(Config(bounds, app, log_config=None), ServerState(), {}), Mock()
    transport.get_extra_info.return_value = None
    transport.get_write_buffer_size.return_value = 100
    transport.is_closing.return_value = False
    for end in ("close", "abort"):
        getattr(transport, end).side_effect = lambda: transport.is_closing.configure_mock(return_value=True)
    connection.connection_made(transport)
    return connection, transport
