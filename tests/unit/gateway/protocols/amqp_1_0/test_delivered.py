"""Messages of another protocol, as a client of AMQP 1.0 gets them (part 3, section 3.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.common.message.amqp_0_9 import compose
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.format import FORMAT
from services.common.message.amqp_1_0.sections import PROPERTIES, Properties, sections
from services.common.message.facts import Facts
from services.gateway.protocols.amqp_1_0.delivered import delivered

_FACTS = Facts("/", "", "q", "amqp-0-9")
_TIMESTAMP = b"\x00\x40"  # the flags of a message of 0-9-1 that says when it was made, and nothing else


@pytest.mark.parametrize(("seconds", "moment"), [(5, 5000), (1 << 63, None), ((1 << 64) - 1, None)])
def test_when_it_was_made(seconds: int, moment: int | None) -> None:
    """In milliseconds (1.6.17); for what is later than they can say there is no time, and the message comes."""
    properties, _ = delivered(_FACTS, _TIMESTAMP + seconds.to_bytes(8, "big"), b"body", attempts=0)
    assert FORMAT.timestamp_ms(properties) == moment


_TEXTS = {
    "message-id": b"m", "user-id": b"guest", "type": b"t", "reply-to": b"r", "correlation-id": b"c",
    "content-type": b"text/plain", "content-encoding": b"gzip", "app-id": b"a", "cluster-id": b"c",
}  # fmt: skip
_ALL = Properties("m", b"guest", "q", "t", "r", "c", "text/plain", "gzip")
_FIELDS = {"type": "subject"}  # by their other names


@pytest.mark.parametrize("name", _TEXTS)
def test_a_text_that_is_not_utf_8(name: str) -> None:
    """An id is binary then (3.2.13), as a user always is; another one is left out, and all that can be read comes."""
    odd = compose(_TEXTS | {name: b"x\xff"}, {}, persistent=False, priority=0)
    raw, _ = delivered(_FACTS, odd, b"body", attempts=0)
    [its] = [each for each in sections(raw) if each.code == PROPERTIES]
    told = b"x\xff" if name.endswith("-id") else None
    field = _FIELDS.get(name, name.replace("-", "_"))
    other: dict[str, Any] = {field: told}
    expected = replace(_ALL, **other) if hasattr(_ALL, field) else _ALL
    assert composite.read(Properties, decode_at(raw, its.value)[0]) == expected
