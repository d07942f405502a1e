"""Facts of many messages at once are as protobuf has them, one by one."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from services.common.message import facts_table
from services.common.message.facts import BEHIND, NUMBERS, Facts
from services.rpc.queue_pb2 import MessageFacts

_KEYS = st.text(max_size=8) | st.sampled_from(["", "a", "é" * 63, "é" * 64, "k" * 127, "k" * 128, "k" * 255])
_FACTS = st.builds(
    Facts,
    virtual_host=st.sampled_from(["/", "other", ""]),
    exchange=st.sampled_from(["amq.topic", "", "x" * 127]),
    routing_key=_KEYS,
    format=st.sampled_from(["amqp-0-9-1", ""]),
    persistent=st.booleans(),
    priority=st.sampled_from([0, 9, 255]),
    ttl_ms=st.sampled_from([None, 0, 127, 128, 60_000, (1 << 63) - 1]) | st.integers(0, (1 << 63) - 1),
    not_before=st.sampled_from([None, 1, 1_800_000_000_000, (1 << 64) - 1]),
    publisher=st.sampled_from(["", "p"]),
)
_MANY = st.lists(_FACTS, min_size=8, max_size=40)


def _by_protobuf(facts: Facts) -> bytes:
    said = {name: value for name, value in facts._asdict().items() if value is not None}
    return MessageFacts(**said).SerializeToString()


@given(_MANY)
def test_there_and_back(table: list[Facts]) -> None:
    """Whatever alternates between messages, the bytes are protobuf's, and give the same facts."""
    raw = list(facts_table.written(table))
    assert raw == list(map(_by_protobuf, table))
    assert facts_table.read(raw) == table


@given(st.lists(_FACTS, max_size=7))
def test_a_few(table: list[Facts]) -> None:
    """The same."""
    raw = list(facts_table.written(table))
    assert facts_table.read(raw) == table


@given(_MANY, st.lists(st.binary(min_size=1, max_size=3), min_size=1))
def test_what_is_nearly_the_same(table: list[Facts], noise: list[bytes]) -> None:
    """Bytes that differ somewhere from what was learned are read as protobuf reads them, or refused as it does."""
    for raw in map(_by_protobuf, table):
        at = sum(raw) % (len(raw) + 1)
        for other in noise:
            odd = raw[:at] + other + raw[at + len(other) :]
            try:
                fields = MessageFacts.FromString(odd)
            except DecodeError:
                with pytest.raises(DecodeError):
                    facts_table.read([raw] * 8 + [odd])
            else:
                found = facts_table.read([raw] * 8 + [odd])[-1]
                assert (found.routing_key, found.ttl_ms or 0) == (fields.routing_key, fields.ttl_ms)


def test_numbers_stand_together() -> None:
    """Facts that may be None are numbers, and follow one another, as do their fields."""
    names = Facts._fields[NUMBERS:BEHIND]
    numbers = [MessageFacts.DESCRIPTOR.fields_by_name[name].number for name in names]
    assert [name for name, value in Facts._field_defaults.items() if value is None] == list(names)
    assert numbers == list(range(numbers[0], numbers[0] + len(names)))


def test_an_expiration_of_its_own_for_each() -> None:
    """Each is read as it was written, and what is cut off or too long as protobuf reads it."""
    table = [Facts("/", "e", "key", "f", ttl_ms=number * number) for number in range(1000)]
    raw = list(facts_table.written(table))
    assert facts_table.read(raw) == table
    for odd in (raw[-1][:-1], raw[-1] + b"\x80", raw[-1][:-1] + b"\x80" * 8 + b"\x01", raw[-1] + raw[-1]):
        try:
            fields = MessageFacts.FromString(odd)
        except DecodeError:
            with pytest.raises(DecodeError):
                facts_table.read([*raw[:8], odd])
        else:
            assert facts_table.read([*raw[:8], odd])[-1].ttl_ms == fields.ttl_ms


def test_a_key_that_is_no_text() -> None:
    """It is protobuf's error, not Python's."""
    table = [Facts("/", "e", f"key-{number}", "f") for number in range(8)]
    raw = list(facts_table.written(table))
    with pytest.raises(DecodeError):
        facts_table.read([*raw, raw[0].replace(b"key-0", b"key-\xff")])


def test_what_comes_again() -> None:
    """Equal bytes give one object, which a backlog keeps once."""
    table = [Facts("/", "e", f"again-{number}", "f") for number in range(100)]
    raw = list(facts_table.written(table))
    assert all(
        one is other for one, other in zip(facts_table.read(raw), facts_table.read(raw[::-1])[::-1], strict=True)
    )
