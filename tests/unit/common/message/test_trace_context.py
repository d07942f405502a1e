from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import pytest

from services.common.errors import SyntaxFault
from services.common.message import field_table
from services.common.message.amqp_0_9 import FORMAT
from services.common.telemetry.context import SpanContext

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"
CONTEXT = SpanContext(int(TRACE, 16), int(SPAN, 16), "", sampled=True, remote=True)


def with_headers(headers: dict[str, Any]) -> bytes:
    """Properties of class basic with these headers and delivery mode 2."""
    return struct.pack(">H", 0x2000 | 0x1000) + field_table.encode(headers) + b"\x02"


def with_table(entries: bytes) -> bytes:
    """The same with the entries of a table as they are."""
    return struct.pack(">HI", 0x2000 | 0x1000, len(entries)) + entries + b"\x02"


def entry(name: bytes, value: bytes, kind: bytes = b"S") -> bytes:
    """One entry of a table, of a type with a length."""
    return bytes((len(name),)) + name + kind + struct.pack(">I", len(value)) + value


@pytest.mark.parametrize("kind", [b"S", b"x"])
def test_headers(kind: bytes) -> None:
    """The context is that of the headers `traceparent` and `tracestate`, text or bytes, among others."""
    raw = entry(b"other", b"\xff\xfe", b"x") + entry(b"traceparent", VALID.encode(), kind)
    properties = with_table(raw + b"\x05countI\x00\x00\x00\x05" + entry(b"tracestate", b"a=1"))
    assert FORMAT.attributes(properties).sampled
    assert FORMAT.trace_context(properties) == CONTEXT._replace(state="a=1")


def test_every_type_is_passed_over() -> None:
    """Fields of every type may stand before the context."""
    values: dict[str, Any] = {"int": 1, "long": 1 << 40, "bool": True, "list": [1, "a"], "table": {"a": {"b": 1}}}
    letters = b"".join(
        bytes((1,)) + b"n" + letter.encode() + b"\0" * size
        for letter, size in {
            "b": 1,
            "B": 1,
            "s": 2,
            "U": 2,
            "u": 2,
            "i": 4,
            "L": 8,
            "f": 4,
            "d": 8,
            "D": 5,
            "V": 0,
            "T": 8,
        }.items()
    )
    encoded = field_table.encode(values)[4:]
    assert FORMAT.trace_context(with_table(encoded + letters + entry(b"traceparent", VALID.encode()))) == CONTEXT


def test_facts_stay() -> None:
    """Being traced changes nothing of what else is read, and equal attributes stay one object."""
    traced = FORMAT.attributes(with_headers({"traceparent": VALID}))
    other = FORMAT.attributes(with_headers({"traceparent": VALID.replace("4bf9", "5bf9")}))
    plain = FORMAT.attributes(with_headers({"x": VALID}))
    assert traced is other
    assert traced == plain._replace(sampled=True)
    assert not FORMAT.attributes(with_headers({"traceparent": VALID[:-1] + "0"})).sampled


@pytest.mark.parametrize(
    "entries",
    [
        entry(b"traceparent", VALID.encode()) * 2,
        entry(b"traceparent", VALID.encode()) + entry(b"traceparent", VALID.replace("4bf9", "5bf9").encode()),
        entry(b"traceparent", VALID.encode()) + entry(b"tracestate", b"a=1") * 2,
        entry(b"traceparent", VALID.encode() * 1000),
        entry(b"traceparent", VALID.encode()) + entry(b"padding", b"x" * 100_000),
        entry(b"traceparent", VALID.encode(), b"F"),
        entry(b"traceparent", VALID.encode(), b"A"),
        entry(b"traceparent", VALID.encode(), b"?"),
        entry(b"traceparent", VALID.encode())[:-1],
        entry(b"traceparent", VALID.encode()) + b"\xff",
        entry(b"other", VALID.encode(), b"?") + entry(b"traceparent", VALID.encode()),
        b"\x0btraceparentI\x00\x00\x00\x05",
        b"\x0btraceparentV",
        b"\x0btraceparent",
        b"\x0btraceparentS\xff\xff\xff\xff" + VALID.encode(),
        entry(b"nested", entry(b"traceparent", VALID.encode()), b"F"),
        entry(b"Traceparent", VALID.encode()),
        b"",
    ],
    ids=range(18),
)
def test_hostile_headers(entries: bytes) -> None:
    """Repeated, huge, malformed or misplaced contexts are ignored: who publishes hears of what is no table."""
    properties = with_table(entries)
    assert FORMAT.trace_context(properties) is None
    with suppress(SyntaxFault):
        FORMAT.headers(properties)
        assert FORMAT.attributes(properties).persistent


def test_not_properties() -> None:
    """Bytes that are no properties have no context."""
    assert FORMAT.trace_context(b"") is None
    assert FORMAT.trace_context(b"\x20\x00\x00") is None
