from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.support.interop_pika import fetch
from tests.support.span_files import names_of, one, wait_for

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": ""},
        {"traceparent": "garbage"},
        {"traceparent": VALID * 500},
        {"traceparent": "x" * 100_000},
        {"traceparent": f"00-{'0' * 32}-{SPAN}-01"},
        {"traceparent": f"00-{TRACE}-{'0' * 16}-01"},
        {"traceparent": f"ff-{TRACE}-{SPAN}-01"},
        {"traceparent": VALID.upper()},
        {"traceparent": f"{VALID}\r\nX-Evil: 1"},
        {"traceparent": 1},
        {"traceparent": True},
        {"traceparent": None},
        {"traceparent": [VALID]},
        {"traceparent": {"traceparent": VALID}},
        {"tracestate": "a=1"},
        {"Traceparent": VALID},
        {"nested": {"traceparent": VALID}},
    ],
    ids=lambda headers: repr(headers)[:60],
)
def test_ignored_and_forwarded(plain: pika.BlockingConnection, spans: Path, name: str, headers: dict[str, Any]) -> None:
    """A context that is none makes no span, harms nothing, and reaches the consumer as it came."""
    channel = plain.channel()
    channel.confirm_delivery()
    channel.queue_declare(name)
    channel.basic_publish("", name, b"body", pika.BasicProperties(headers=headers))
    assert fetch(channel, name).properties.headers == headers
    # A traced message behind it shows that the one before made no span.
    marker = secrets.token_hex(16)
    marked = pika.BasicProperties(headers={"traceparent": f"00-{marker}-{SPAN}-01"})
    channel.basic_publish("", name, b"body", marked)
    fetch(channel, name)
    names = {f"enqueue {name}", f"send {name}"}  # of two services, whichever writes first
    found = wait_for(spans, lambda found: names <= names_of(found, marker))
    assert one(found, f"send {name}").trace == marker
    assert one(found, f"enqueue {name}").trace == marker


@pytest.mark.parametrize("state", ["x" * 513, "a=1\r\n", 5, ["a=1"], {"a": 1}], ids=lambda state: repr(state)[:20])
def test_tracestate(plain: pika.BlockingConnection, spans: Path, name: str, state: object) -> None:
    """A bad tracestate takes nothing from a good traceparent, and is forwarded too."""
    channel, trace = plain.channel(), secrets.token_hex(16)
    headers = {"traceparent": f"00-{trace}-{SPAN}-01", "tracestate": state}
    channel.queue_declare(name)
    channel.basic_publish("", name, b"body", pika.BasicProperties(headers=headers))
    assert fetch(channel, name).properties.headers == headers
    found = wait_for(spans, lambda found: any(span.trace == trace and span.name == f"send {name}" for span in found))
    assert one(found, f"send {name}").trace == trace
