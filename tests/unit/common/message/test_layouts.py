"""The attributes of many properties are those of each of them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from services.common.errors import BrokerError
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.amqp_0_9.layouts import Layouts, Looked
from services.common.message.facts import Attributes

_TEXTS = st.none() | st.sampled_from(["", "1", "2", "10", "x" * 200])
_TRACES = st.sampled_from([f"00-{1:032x}-{1:016x}-{flags:02x}" for flags in (0, 1, 2, 3)])
_HEADERS = st.dictionaries(
    st.sampled_from(["traceparent", "CC", "BCC", "x-delay", "x-qpid-not-valid-before", "a", "CCC"]),
    _TRACES | st.integers(0, 5) | st.lists(st.sampled_from(["CC", "x-delay"]), max_size=2),
    max_size=3,
)
_PROPERTIES = st.builds(
    commands.Basic.Properties,
    content_type=_TEXTS,
    headers=st.none() | _HEADERS,
    delivery_mode=st.none() | st.sampled_from([1, 2]),
    priority=st.none() | st.integers(0, 255),
    correlation_id=_TEXTS,
    reply_to=_TEXTS | st.just("amq.rabbitmq.reply-to"),
    expiration=st.none() | st.sampled_from(["1", "10", "ten"]),
    message_id=_TEXTS,
    user_id=_TEXTS,
)
_COLUMNS = st.lists(_PROPERTIES.map(lambda properties: properties.marshal()), min_size=1, max_size=20)
_MUTATIONS = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 1 << 10), st.integers(0, 255)), max_size=3)


def _one_by_one(column: list[bytes]) -> list[Attributes]:
    found = list[Attributes]()
    for properties in column:
        try:
            found.append(FORMAT.attributes(properties))
        except BrokerError:
            break
    return found


@pytest.mark.fuzz
@given(_COLUMNS, _MUTATIONS)
def test_they_are_those_of_each(column: list[bytes], mutations: Any) -> None:
    """Any properties, some octets of them changed: as they are read one by one, up to the first that is refused."""
    for which, where, value in mutations:
        octets = bytearray(column[which % len(column)])
        if octets:
            octets[where % len(octets)] = value
            column[which % len(column)] = bytes(octets)
    assert FORMAT.attributes_of(column) == _one_by_one(column)
    assert FORMAT.attributes_of(column * 2) == _one_by_one(column * 2)


@pytest.mark.parametrize("name", ["CC", "BCC", "x-delay", "traceparent"])
def test_headers_are_heard_whatever_came_before(name: str) -> None:
    """Properties without headers may have the length of others, and octets at the same places: their flags differ."""
    value = {"x-delay": 5, "traceparent": f"00-{1:032x}-{1:016x}-01"}.get(name, ["a"])
    telling = commands.Basic.Properties(headers={name: value}).marshal()
    plain = commands.Basic.Properties(headers={"Z" + name[1:]: value}).marshal()
    size = len(plain) - 6
    four_texts = struct.pack(">H", 0xC480) + b"\0\0\0" + bytes((size,)) + b"m" * size
    assert len(four_texts) == len(plain)
    for _ in range(2):
        assert FORMAT.attributes_of([four_texts, plain, b"\0\0"]) == [Attributes()] * 3
    assert FORMAT.attributes_of([b"\0\0", telling]) == [Attributes(), FORMAT.attributes(telling)]
    assert FORMAT.attributes(telling) != Attributes()


def test_a_name_may_begin_where_a_column_does() -> None:
    """Flags and a length may be the octets of a header's name and its length."""
    delayed = commands.Basic.Properties(headers={"x-delay": 5}).marshal()
    other = commands.Basic.Properties(headers={"y-delay": 5}).marshal()
    odd = b"\x07x-delay" + b"c" * 40 + b"\0\x011" + b"\0" * 8 + b"\0\x05guest\0"
    for _ in range(2):
        FORMAT.attributes_of([other, b"\0\0"])
    found = FORMAT.attributes_of([odd, delayed, b"\0\0"])
    assert found == [FORMAT.attributes(odd), FORMAT.attributes(delayed), Attributes()]
    assert found[1].delay_ms == 5


def test_what_was_learnt_is_bounded() -> None:
    """Whatever comes: nothing is kept of what never comes again."""
    for number in range(20_000):
        expiration = commands.Basic.Properties(expiration=str(number), message_id="x" * (number % 200)).marshal()
        assert FORMAT.attributes_of([expiration, b"\0\0"]) == [Attributes(ttl_ms=number), Attributes()]
    layouts = [layout for same in FORMAT._layouts._layouts.values() for layout in same]
    assert sum(len(layout.known) for layout in layouts) <= 4096
    assert len(FORMAT._layouts._expiring) <= 4096


def test_layouts_that_never_come_again_are_not_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who learns a layout does more than who reads one message: it is worth it for the second that has it."""
    learnt = list[bytes]()
    layouts = Layouts(FORMAT._look)
    monkeypatch.setattr(layouts, "_learn", lambda properties, _: learnt.append(properties))
    column = [
        commands.Basic.Properties(headers={"n": "x" * size}, message_id="m" * size, reply_to=str(size)).marshal()
        for size in range(200)
    ]
    assert len(layouts.attributes(column)) == 200
    assert not learnt


def test_an_expiration_of_its_own_for_each() -> None:
    """A layout is walked over twice; each message has its own, and what else it says, up to one that is wrong."""
    walked = list[bytes]()

    def look(properties: bytes) -> Attributes | Looked:
        walked.append(properties)
        return FORMAT._look(properties)

    def said(expiration: str, priority: int) -> bytes:
        return commands.Basic.Properties(expiration=expiration, priority=priority, message_id="m").marshal()

    column = [said(f"9{number:06}", number % 2) for number in range(1000)]
    wanted = [Attributes(priority=number % 2, ttl_ms=9_000_000 + number) for number in range(1000)]
    layouts = Layouts(look)
    assert layouts.attributes([*column, said("9,00000", 1), column[0]]) == wanted
    assert len(walked) == 4
    found = layouts.attributes(column)
    assert found == wanted
    assert all(one is other for one, other in zip(found, layouts.attributes(column), strict=True))


@pytest.mark.parametrize("size", [10, 600, 3000])
def test_a_layout_is_walked_over_twice(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """However long the properties are, and where texts in headers are of other lengths each time."""
    walked = list[bytes]()

    def look(properties: bytes) -> Attributes | Looked:
        walked.append(properties)
        return FORMAT._look(properties)

    column = [
        commands.Basic.Properties(headers={"a": "x" * (n % 9), "b": f"{n:02}" + "y" * (size - n % 9)}).marshal()
        for n in range(100)
    ]
    assert Layouts(look).attributes(column) == [Attributes()] * 100
    assert len(walked) == 2
