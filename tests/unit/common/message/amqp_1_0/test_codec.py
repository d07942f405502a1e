"""Values of AMQP 1.0 and their bytes (part 1 of the specification)."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.decode import decode, decode_at, element_at
from services.common.message.amqp_1_0.encode import array_of, encode, encode_list
from services.common.message.amqp_1_0.passing import DEEPEST, skip


def whole(kind: type[int], bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    least = -(1 << bits - 1) if signed else 0
    return st.integers(least, least + (1 << bits) - 1).map(kind)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=300),
    st.binary(max_size=300),
    st.uuids(),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(v.Float),
    *(whole(kind, bits, signed=False) for kind, bits in ((v.UByte, 8), (v.UShort, 16), (v.UInt, 32), (v.ULong, 64))),
    *(whole(kind, bits, signed=True) for kind, bits in ((v.Byte, 8), (v.Short, 16), (v.Int, 32), (v.Long, 64))),
    whole(v.Timestamp, 64, signed=True),
    st.characters(exclude_categories=["Cs"]).map(v.Char),
    st.text("abc:-", max_size=300).map(v.Symbol),
    st.sampled_from([4, 8, 16]).flatmap(lambda size: st.binary(min_size=size, max_size=size)).map(v.Decimal),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(st.one_of(st.text(), st.integers(0, 9).map(v.UInt)), inner, max_size=4),
        st.builds(v.Described, st.just(v.ULong(5)), inner),
    ),
)

ROWS: list[tuple[str, Any]] = [
    ("40", None),
    ("41", True),
    ("5600", False),
    ("43", v.UInt(0)),
    ("52ff", v.UInt(255)),
    ("7000000100", v.UInt(256)),
    ("44", v.ULong(0)),
    ("8000000000ffffffff", v.ULong(0xFFFFFFFF)),
    ("54ff", v.Int(-1)),
    ("5580", v.Long(-128)),
    ("7300010348", v.Char("\U00010348")),
    ("83000001d3ac5d3c00", v.Timestamp(0x1D3AC5D3C00)),
    ("9800112233445566778899aabbccddeeff", UUID("00112233-4455-6677-8899-aabbccddeeff")),
    ("a003010203", b"\x01\x02\x03"),
    ("a106e282ac6d6974", "€mit"),
    ("a303616263", v.Symbol("abc")),
    ("45", []),
    ("c00401a10161", ["a"]),
]


@pytest.mark.fuzz
@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    """Each value comes back as it was, with its type; and what passes over it ends where it ends (1.6)."""
    data = encode(value)
    again = decode(data)
    assert again == value
    assert type(again) is type(value)
    assert skip(data, 0) == len(data)
    assert encode(again) == data


@pytest.mark.parametrize(("data", "value"), ROWS)
def test_the_constructors_of_the_specification(data: str, value: Any) -> None:
    """Each of these encodings is of that value (1.6.1 to 1.6.22)."""
    found = decode(bytes.fromhex(data))
    assert found == value
    assert type(found) is type(value)


def test_the_example_of_a_described_value() -> None:
    """The specification's own: a URL (figure 1.3)."""
    url = v.Described("URL", "http://example.org/hello-world")
    assert decode(b"\x00\xa1\x03URL\xa1\x1ehttp://example.org/hello-world") == url


@pytest.mark.parametrize(
    "array",
    [
        array_of(v.Symbol, ["a", "bb"]),
        v.Array(b"\x52", (v.UInt(1), v.UInt(2))),
        v.Array(b"\x56", (True, False)),
        v.Array(b"\x45", ([], [])),
        v.Array(b"\xc0", ([v.Long(1), v.UInt(2)], [])),
        v.Array(b"\xd1", ({"a": v.Long(1)},)),
        v.Array(b"\x00\x53\x05\x52", (v.Described(v.ULong(5), v.UInt(3)),)),
        v.Array(b"\xe0", (v.Array(b"\x73", (v.Char("x"),)),)),
    ],
)
def test_arrays(array: v.Array) -> None:
    """An array of any constructor comes back with it (1.6.24)."""
    assert decode(encode(array)) == array


@pytest.mark.parametrize(
    "data",
    [
        "",
        "3f",  # no constructor
        "5602",  # a boolean is 0 or 1
        "730000d800",  # a character is none of UTF-16's halves
        "a1",
        "a10261",
        "a101ff",  # not UTF-8
        "a301ff",  # not ASCII
        "a201ff",  # no such variable type
        "7300110000",  # beyond Unicode
        "c00000",  # a size without room for a count
        "c0020241",
        "c00202414142",
        "c10301a10161",  # a key without a value
        "c1050245a10161",  # a compound key
        "c00401a1016141",  # bytes behind
        "d0ffffffffffffffff",
        "e006ffffffff41",
        "f00000000507ffffff40",  # millions of nothing
        "f000000005ffffffff40",
        "00",
        "0040",
    ],
)
def test_what_cannot_be_read(data: str) -> None:
    """Bytes that are no value are refused as the peer's error, whichever they are."""
    with pytest.raises(SyntaxFault):
        decode(bytes.fromhex(data))


@pytest.mark.parametrize("opening", ["00" * 5000, "c0ff01" * 5000, "00a10161" * 5000])
def test_depth(opening: str) -> None:
    """Endless nesting is refused, and does not overrun the interpreter's stack."""
    with pytest.raises(SyntaxFault):
        decode(bytes.fromhex(opening))


def test_depth_of_what_is_passed_over() -> None:
    """Likewise where only sizes are read: descriptors have none."""
    with pytest.raises(SyntaxFault):
        skip(bytes(5000), 0)


def test_deep_enough() -> None:
    """Values nested as deeply as any use needs are read."""
    value: list[Any] = []
    for _ in range(DEEPEST - 1):
        value = [value]
    assert decode(encode(value)) == value


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    """Any bytes are a value or a fault; reading and skipping end in the same place."""
    try:
        _, end = decode_at(data, 0)
    except SyntaxFault:
        return
    assert skip(data, 0) == end


def test_one_element() -> None:
    """One element of a list is found without reading the others."""
    data = encode(["a", [b"b"], v.UInt(3)])
    assert [element_at(data, 0, index) for index in range(4)] == ["a", [b"b"], 3, None]
    assert element_at(encode([]), 0, 0) is None
    with pytest.raises(SyntaxFault):
        element_at(encode({}), 0, 0)


@pytest.mark.parametrize("value", [v.UByte(256), v.Symbol("ä"), v.Decimal(b"1"), v.UInt(-1), 1 << 63, object()])
def test_what_cannot_be_written(value: Any) -> None:
    """A value that its type has no room for is refused."""
    with pytest.raises(SyntaxFault):
        encode(value)


def test_lists_of_what_is_encoded() -> None:
    """Encoded elements are put together as a list of theirs would be."""
    for count in (0, 3, 300):
        assert encode_list([encode("x")] * count) == encode(["x"] * count)


def test_elements_that_take_no_bytes() -> None:
    """A few bytes do not say that there are thousands of elements: a frame has room for many such arrays."""
    most = b"\xe0\x02\x08\x41"  # 8 times true
    assert decode(most) == v.Array(b"\x41", (True,) * 8)
    with pytest.raises(SyntaxFault, match="an array of 9 elements in 0 bytes"):
        decode(b"\xe0\x02\x09\x41")


def test_elements_with_many_descriptors() -> None:
    """A thousand descriptors around each of a thousand elements were a million objects, of three thousand bytes."""

    def array(descriptors: int, elements: int) -> bytes:
        body = b"\x00\x44" * descriptors + b"\x50" + bytes(elements)
        return struct.pack(">BII", 0xF0, len(body) + 4, elements) + body

    value: Any = v.UByte(0)
    for _ in range(4):
        value = v.Described(v.ULong(0), value)
    assert decode(array(4, 2)).values == (value, value)
    with pytest.raises(SyntaxFault, match="more than 4 descriptors"):
        decode(array(1000, 1000))


def test_descriptors_of_arrays_count_as_depth() -> None:
    """Arrays within each other whose elements are described are as deep as all of it: no stack overflows."""
    encoded = b"\x50\x00"
    for _ in range(20):
        body = b"\x00\x44" * 4 + encoded
        encoded = b"\xf0" + struct.pack(">II", len(body) + 4, 1) + body
    with pytest.raises(SyntaxFault, match="values within each other"):
        decode(encoded)


@pytest.mark.parametrize("key", [lambda n: UUID(int=n * ((1 << 61) - 1)), v.ULong, float])
def test_maps_with_many_keys_that_are_no_text(key: Any) -> None:
    """A peer chooses them so that all collide in a dictionary: 72 KB held a gateway for a third of a second."""
    most = {key(n): None for n in range(64)}
    assert decode(encode(most)) == most
    with pytest.raises(SyntaxFault, match="more than 64 keys"):
        decode(encode({**most, key(64): None}))


def test_maps_with_many_keys() -> None:
    """Of text there may be any number, as of delivery tags."""
    many: dict[Any, Any] = {v.Symbol(f"k{n}"): n % 2 > 0 for n in range(500)}
    many |= {b"%d" % n: None for n in range(500)}
    assert decode(encode(many)) == many
