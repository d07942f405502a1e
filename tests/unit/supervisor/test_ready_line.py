"""What is said when the stack is ready."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.common.config import Settings
from services.supervisor.up import amqp_addresses

PLAIN = "AMQP at amqp://127.0.0.1:5672"
ORIGINS = ("https://example.com",)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ""),
        ({"tls_self_signed": True}, ", over TLS at amqps://127.0.0.1:5671"),
        ({"tls_certificate": (Path("a.pem"),), "amqps_port": 1}, ", over TLS at amqps://127.0.0.1:1"),
        ({"websocket_origins": ORIGINS}, ", over WebSocket at ws://127.0.0.1:5672"),
        (
            {"websocket_origins": ORIGINS, "tls_self_signed": True},
            ", over TLS at amqps://127.0.0.1:5671, over WebSocket at ws://127.0.0.1:5672 and wss://127.0.0.1:5671",
        ),
    ],
)
def test_where_clients_connect(given: dict[str, Any], told: str) -> None:
    """Each way that is on is named with its address, and no other."""
    assert amqp_addresses(Settings(amqp_host="127.0.0.1", **given)) == PLAIN + told
