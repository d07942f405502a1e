"""What is no request is answered as every other error is: as JSON that says what is wrong, and an end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.http_connected import http_connected


async def _never(_scope: Any, _receive: Any, _send: Any) -> None:
    raise AssertionError("no request came")


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"AMQP\x00\x00\x09\x01\r\n\r\n", "request line"),
        (b"GET / HTTP/1.1\r\nHost: here\r\nAuthorization: Basic secret\0\r\n\r\n", "header line"),
        (b"GET / HTTP/1.1\r\n\r\n", "Host"),
        (b"GET /" + b"x" * (80 << 10), "too long"),
        (b"GET / HTTP/1.1\r\nHost: here\r\nx: " + b"x" * (65 << 10) + b"\r\n\r\n", "more than 65536 bytes"),
    ],
    ids=["another protocol", "a zero", "no host", "without an end", "too long"],
)
async def test_answer(sent: bytes, why: str) -> None:
    """Status 400, a body of the length that the head says, and a closed connection."""
    connection, transport = http_connected(_never)
    connection.data_received(sent)
    head, _, body = b"".join(each.args[0] for each in transport.write.mock_calls).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert b"content-length: %d\r\n" % len(body) in head
    told = json.loads(body)
    assert told["error"] == "SyntaxFault"
    assert why in told["reason"] == told["errorMessage"]
    assert "secret" not in told["reason"]
    transport.close.assert_called_once()
    connection.connection_lost(None)
