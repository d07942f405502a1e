"""Field tables."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import decode as their_decode
from pamqp import encode as their_encode

from services.common.errors import SyntaxFault
from services.common.message import field_table


def _table(*fields: bytes) -> bytes:
    payload = b"".join(fields)
    return struct.pack(">I", len(payload)) + payload


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | st.integers(0, 1 << 33).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
    | st.decimals(-1000, 1000, places=3)
)
_NAMES = st.text(max_size=30)
_TABLES = st.dictionaries(
    _NAMES,
    st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4)),
    max_size=6,
)


@given(_TABLES)
def test_what_was_encoded_decodes_to_the_same(table: dict[str, object]) -> None:
    """Every Python value that a field can hold survives the round trip."""
    assert field_table.decode(field_table.encode(table)) == table


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_a_syntax_fault(data: bytes) -> None:
    """No bytes raise anything but SyntaxFault."""
    try:
        field_table.decode(data)
    except SyntaxFault:
        return


def test_reads_what_another_codec_writes() -> None:
    """pamqp's encoding of common types is read."""
    table = {
        "text": "ü",
        "number": 7,
        "yes": True,
        "list": [1, "a"],
        "inner": {"x": None},
        "when": datetime(2024, 1, 2, tzinfo=UTC),
    }
    assert field_table.decode(their_encode.field_table(table)) == table


def test_another_codec_reads_what_is_written() -> None:
    """Our encoding is read by pamqp."""
    table = {"text": "ü", "large": 1 << 40, "no": False, "list": [1, "a"], "inner": {"x": None}, "half": 0.5}
    assert their_decode.field_table(field_table.encode(table))[1] == table


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        ("ab", b"S\0\0\0\x02ab"),
        (True, b"t\x01"),
        (1, b"I\0\0\0\x01"),
        (-(1 << 31), b"I\x80\0\0\0"),
        (1 << 31, b"l\0\0\0\0\x80\0\0\0"),
        (0.5, b"d\x3f\xe0\0\0\0\0\0\0"),
        (b"ab", b"x\0\0\0\x02ab"),
        (datetime.fromtimestamp(5, UTC), b"T\0\0\0\0\0\0\0\x05"),
        (Decimal("1.5"), b"D\x01\0\0\0\x0f"),
        (None, b"V"),
        ([1], b"A\0\0\0\x05I\0\0\0\x01"),
        ({"k": None}, b"F\0\0\0\x03\x01kV"),
    ],
)
def test_encodes_as_rabbitmq_does(value: object, wire: bytes) -> None:
    """Each Python type has the type letter that RabbitMQ would write."""
    assert field_table.encode({"k": value}) == _table(b"\x01k", wire)


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        (b"b\xff", -1),
        (b"B\xff", 255),
        (b"s\xff\xfe", -2),
        (b"U\xff\xfe", -2),
        (b"u\xff\xfe", 65534),
        (b"i\xff\xff\xff\xff", (1 << 32) - 1),
        (b"L" + b"\xff" * 8, -1),
        (b"f\x3f\x00\0\0", 0.5),
        (b"S\0\0\0\x01\xff", b"\xff"),
        (b"T" + b"\xff" * 8, (1 << 64) - 1),
        (b"t\x07", True),
        (b"c\0\0\0\x02hi", "hi"),
        (b"C\0\0\0\x02hi", "hi"),
        (b"k!", b"!"),
    ],
)
def test_decodes_liberally(wire: bytes, value: object) -> None:
    """Every type letter that is in use is understood, and odd values of it are kept."""
    assert field_table.decode(_table(b"\x01k", wire)) == {"k": value}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\x05\x01k",
        _table(b"\x01k", b"I\0\0"),
        _table(b"\x01k", b"?"),
        _table(b"\x01\xff", b"V"),
        _table(b"\x01k", b"S\xff\xff\xff\xff"),
        _table(b"\x01k", b"A\0\0\0\x02I\0"),
        _table() + b"x",
        _table(b"\x09k"),
    ],
)
def test_bad_tables_are_syntax_faults(data: bytes) -> None:
    """Truncated, overlong and unknown fields are refused."""
    with pytest.raises(SyntaxFault):
        field_table.decode(data)


def test_depth_is_limited() -> None:
    """A table nested without end is refused before the interpreter's stack is."""
    data = _table()
    for _ in range(100):
        data = _table(b"\x01k", b"F", data)
    with pytest.raises(SyntaxFault, match="nested"):
        field_table.decode(data)


@pytest.mark.parametrize(
    "value",
    [
        1 << 64,
        object(),
        "\ud800",
        Decimal("1e30"),
        Decimal("NaN"),
        Decimal(1 << 31),
        Decimal("1e-300"),
        datetime(1900, 1, 1, tzinfo=UTC),
    ],
)
def test_values_that_no_field_holds_are_refused(value: object) -> None:
    """What cannot be encoded is a SyntaxFault, not a crash."""
    with pytest.raises(SyntaxFault):
        field_table.encode({"k": value})


def test_long_names_are_refused() -> None:
    """A field's name is a short string."""
    with pytest.raises(SyntaxFault):
        field_table.encode({"k" * 256: 1})


def test_deep_values_are_refused() -> None:
    """Encoding has the same limit of depth as decoding."""
    value: list[object] = []
    for _ in range(100):
        value = [value]
    with pytest.raises(SyntaxFault, match="nested"):
        field_table.encode({"k": value})
