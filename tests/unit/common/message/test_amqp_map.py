"""AMQP 0-10, section 3: maps and lists as values of messages; vectors are written out by hand from its tables."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message.amqp_map import DEEPEST, dump, load_list, load_map

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=60), inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        ({}, "00000004 00000000"),
        ({"a": 1}, "0000000b 00000001 01 61 21 00000001"),
        ({"a": 2**64 - 1}, "0000000f 00000001 01 61 32 ffffffffffffffff"),
        ({"a": "b", "c": True}, "0000000e 00000002 01 61 95 0001 62 01 63 08 01"),
        ({"n": None, "l": [{}]}, "0000001b 00000002 01 6e f0 01 6c a9 0000000d 00000001 a8 00000004 00000000"),
    ],
)
def test_maps(value: Any, raw: str) -> None:
    """Size, count, and of each entry its key, the code of its type and its value."""
    octets = bytes.fromhex(raw)
    assert dump(value) == octets
    assert load_map(octets) == value


@pytest.mark.parametrize(
    ("code", "raw", "value"),
    [
        ("01", "ff", -1), ("02", "ff", 255), ("11", "ff00", -256), ("12", "ff00", 65280),
        ("21", "80000000", -(2**31)), ("22", "80000000", 2**31), ("31", "ffffffffffffffff", -1),
        ("32", "ffffffffffffffff", 2**64 - 1), ("33", "3ff8000000000000", 1.5), ("23", "3fc00000", 1.5),
        ("08", "00", False), ("08", "01", True), ("38", "0000000000000007", 7), ("f0", "", None), ("f1", "", True),
        ("48", "00" * 15 + "01", "00000000-0000-0000-0000-000000000001"), ("27", "00000041", "A"), ("04", "41", "A"),
        ("85", "0161", "a"), ("84", "01e9", "é"), ("86", "020041", "A"), ("95", "000161", "a"), ("80", "0161", "a"),
        ("90", "000161", "a"), ("a0", "0000000161", "a"), ("aa", "00000009 85 00000002 0161 0162", ["a", "b"]),
        ("aa", "00000000", []), ("c8", "0000000000", "\0" * 5),
    ],
)  # fmt: skip
def test_types(code: str, raw: str, value: Any) -> None:
    """Each of the table in section 3.2 that a client may send, as what JSON has next to it."""
    octets = bytes.fromhex(code) + bytes.fromhex(raw)
    listed = (1).to_bytes(4) + octets
    assert load_list(len(listed).to_bytes(4) + listed) == [value]


def test_nothing() -> None:
    """A body of no bytes, or a size of none, has nothing in it."""
    assert (load_map(b""), load_list(b""), load_map(bytes(4))) == ({}, [], {})


@given(st.dictionaries(st.text(max_size=60), VALUES, max_size=4))
def test_round_trip(value: dict[str, Any]) -> None:
    """Any JSON comes back as it was."""
    assert load_map(dump(value)) == value


@given(st.binary(max_size=60))
def test_bytes_that_are_none(raw: bytes) -> None:
    """They are a typed error, or a value, and never anything else."""
    for load in (load_map, load_list):
        with contextlib.suppress(SyntaxFault):
            load(raw)


@pytest.mark.parametrize("value", [{"a" * 256: 1}, [2**64], [-(2**63) - 1], [object()]])
def test_what_does_not_fit(value: Any) -> None:
    """Is a typed error."""
    with pytest.raises(SyntaxFault):
        dump(value)


def test_too_deep() -> None:
    """Lists within each other have a bound either way, so that no stack overflows."""
    value: list[Any] = []
    for _ in range(135):  # as arguments of a queue may be, and what they are told in
        value = [value]
    assert dump(value)
    for _ in range(10):
        value = [value]
    with pytest.raises(SyntaxFault):
        dump(value)
    raw = b""
    for _ in range(DEEPEST + 2):
        raw = b"\xa9" + (len(raw) + 4).to_bytes(4) + (1 if raw else 0).to_bytes(4) + raw
    with pytest.raises(SyntaxFault):
        load_list(raw[1:])


def test_a_long_text() -> None:
    """Beyond 65,535 bytes it is a binary of 32 bits' size: 0-10 has no longer string."""
    text = "x" * 70_000
    assert load_list(dump([text])) == [text]


@pytest.mark.parametrize("value", [[None] * 5000, {"a": [[1] * 50] * 100}, [{f"{n}": n for n in range(4095)}]])
def test_too_many(value: Any) -> None:
    """Values that could not be read without a pause for all others, those within others too."""
    with pytest.raises(SyntaxFault, match="more than 4096 values"):
        (load_map if isinstance(value, dict) else load_list)(dump(value))


def test_too_many_alike() -> None:
    """Arrays count as what is in them."""

    def of(count: int) -> bytes:
        array = b"\x02" + count.to_bytes(4) + bytes(count)
        listed = b"\xaa" + len(array).to_bytes(4) + array
        return (len(listed) + 4).to_bytes(4) + (1).to_bytes(4) + listed

    assert load_list(of(4094)) == [[0] * 4094]
    with pytest.raises(SyntaxFault, match="more than 4096 values"):
        load_list(of(4095))


def test_as_many_as_are_read() -> None:
    """The most that there may be."""
    value = [{f"{n}": n for n in range(4094)}]
    assert load_list(dump(value)) == value
