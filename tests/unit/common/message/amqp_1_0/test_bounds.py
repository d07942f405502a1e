"""Who reads a message does so in one go, while all others wait: how much there may be to read has a bound."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from services.common.errors import PreconditionFailed, SyntaxFault
from services.common.message.amqp_1_0 import passing
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.decode import decode
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.format import FORMAT, _known
from services.common.message.amqp_1_0.passing import has_many, skip
from services.common.message.amqp_1_0.sections import NULL, sections, split
from services.common.message.bounds import LITTLE, MOST_KEPT, MOST_READ, MOST_SECTIONS, MOST_SENT

_DATA = b"\x00\x53\x75\xa0\x01x"
_EMPTY = b"\x00\x53\x75\xa0\x00"


def section(code: int, value: Any) -> bytes:
    return encode(v.Described(v.ULong(code), value))


def properties(count: int) -> bytes:
    """Application properties."""
    return section(0x74, {f"k{number}": number for number in range(count)})


class Counting(bytes):
    """Bytes that count how often one of them is looked at."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)


@pytest.mark.parametrize("one", [_EMPTY, b"\x00\x53\x76\x45"])
def test_sections(one: bytes) -> None:
    """Those of a body may come more than once (3.2), and not without end: four million took seven seconds."""
    assert len(sections(one * MOST_SECTIONS)) == MOST_SECTIONS
    message = Counting(one * 1_000_000)
    with pytest.raises(PreconditionFailed, match="sections"):
        split(message)
    assert message.looks <= 5 * MOST_SECTIONS


def test_a_body_of_many_sections() -> None:
    """One that was stored before there was a bound is delivered to other protocols as it is."""
    assert FORMAT.content(_DATA * MOST_SECTIONS) == b"x" * MOST_SECTIONS
    body = Counting(_DATA * 1_000_000)
    assert FORMAT.content(body) is body
    assert body.looks <= 5 * MOST_SECTIONS


def test_a_body_is_not_looked_into() -> None:
    """But for text or bytes: a value may be a list of millions."""
    body = Counting(section(0x77, [None] * 100_000))
    assert FORMAT.content(body) is body
    assert body.looks < 10


@pytest.mark.parametrize(
    "before",
    [
        properties(MOST_SENT),
        section(0x72, {v.Symbol("x-a"): [None] * 5000}),
        section(0x70, [[None] * 5000]),
        section(0x73, [[[None] * 50] * 100]),
    ],
    ids=["application properties", "annotations", "header", "properties"],
)
def test_what_is_published(before: bytes) -> None:
    """Nothing in front of a body has so many values that a later reader stops; the body may."""
    with pytest.raises(PreconditionFailed, match="in front of its body"):
        split(before + NULL)
    assert split(properties(MOST_SENT // 2 - 1) + NULL)[0] == properties(MOST_SENT // 2 - 1)
    assert split(section(0x77, [None] * 5000))[0] == b""


def test_what_was_stored_before() -> None:
    """More than is read at once is as what nobody can read, and stays as it is where headers are added to it."""
    told, ids = properties(100_000), section(0x73, ["id"])
    raw = Counting(ids + told)
    with pytest.raises(SyntaxFault):
        FORMAT.headers(raw)
    assert raw.looks < 2 * MOST_KEPT
    died = FORMAT.with_headers(raw, {"x-death": [{"queue": "q"}]})
    assert died.endswith(ids + told)
    assert died.startswith(section(0x72, {v.Symbol("x-death"): [{"queue": "q"}]}))
    assert FORMAT.text(died, "message-id") == "id"
    assert FORMAT.attributes(raw) == FORMAT.attributes(ids)


def test_headers_may_be_added_to_the_most_that_is_published() -> None:
    """A queue that dead-letters a message says so in its headers, and the next one reads all of them."""
    raw = properties(MOST_SENT // 2 - 1)
    headers = dict(FORMAT.headers(raw))
    deaths = [{"queue": f"q{number}", "count": 1, "reason": "expired"} for number in range(200)]
    assert FORMAT.headers(FORMAT.with_headers(raw, headers | {"x-death": deaths}))["x-death"] == deaths


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (None, 1),
        ([], 1),
        (["a", b"b", 1.0, v.UInt(0)], 5),
        ({"a": [1, 2], "b": {"c": None}}, 9),
        (v.Array(b"\xa3", (v.Symbol("a"),) * 20), 21),
        (v.Array(b"\xc0", ([1, "a"], [], [None])), 7),
        (v.Described(v.ULong(1), ["a"]), 4),
    ],
)
def test_how_many(value: Any, count: int) -> None:
    """Values within others count, and keys."""
    data = encode(value)
    assert not has_many(data, (0,), count)
    assert has_many(data, (0,), count - 1)
    assert has_many(data + data, (0, len(data)), 2 * count - 1)


def test_lists_of_an_array_that_reach_over_its_end() -> None:
    """They count as what is read of them, not as what the array says that it is."""
    inner = struct.pack(">II", 4 + 9000, 9000) + b"\x40" * 9000
    liar = b"\xe0\x03\x01\xd0" + inner
    assert has_many(liar, (0,), MOST_READ)
    with pytest.raises(SyntaxFault, match="values within one"):
        decode(liar)


def test_elements_with_descriptors() -> None:
    """Descriptors of an array's elements are read before it is known how many there are."""
    body = b"\x00" + encode([None] * 9000) + b"\x40"
    assert has_many(b"\xf0" + struct.pack(">II", len(body) + 4, 1) + body, (0,), MOST_READ)
    inner = struct.pack(">II", 4 + 9000, 9000) + b"\x40" * 9000
    assert has_many(b"\xe0\x05\x01\x00\x40\xd0" + inner, (0,), MOST_READ)  # says that it is smaller


def test_what_is_behind_an_array_with_descriptors() -> None:
    """It is no part of it: a large body has no values, and those that stand there are counted as they are."""
    elements = b"\x00\xa3\x03foo\xa1" + b"\x01a" + b"\x01b"
    array = b"\xf0" + struct.pack(">II", len(elements) + 4, 2) + elements
    assert has_many(array, (0,), 4)  # the array, and each time a description, what it says and what it is of
    assert not has_many(array + b"z" * 9000, (0,), 50)
    inside = b"\xd0" + struct.pack(">II", 4 + len(array) + 60, 61) + array + b"\x40" * 60
    assert has_many(inside, (0,), 60)
    assert not has_many(inside, (0,), 90)


def test_descriptors_of_descriptors() -> None:
    """Each may be described in turn, twice as many in each step: what is passed over has few."""
    tree = b"\x40"
    for _ in range(12):
        tree = b"\x00" + tree + tree
    with pytest.raises(SyntaxFault, match="descriptors"):
        skip(tree, 0)
    assert has_many(tree, (0,), MOST_READ)


def test_little_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a usual message nothing is counted."""
    monkeypatch.setattr(passing, "_left", None)
    few = properties(200)
    assert len(few) < LITTLE
    assert split(few + section(0x77, "x" * 10_000))[0] == few
    assert len(FORMAT.headers(few)) == 200


def test_what_is_long_is_not_remembered() -> None:
    """Thousands of answers about properties of megabytes would fill the memory."""
    before = _known.cache_info().currsize
    assert FORMAT.attributes(section(0x73, [None, b"u" * 10_000])).user_id == "u" * 10_000
    assert _known.cache_info().currsize == before
