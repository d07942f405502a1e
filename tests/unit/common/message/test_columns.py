"""Columns on the wire: what was put in comes out, with values that repeat or not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import InternalError
from services.common.message import columns, facts_table
from services.common.message.facts import Attributes, Facts, facts_of, from_bytes, to_bytes
from services.common.message.indexes import choice, chosen, condensed, pick, runs
from services.rpc.queue_pb2 import DeliveryBatch, MessageFacts, PublishBatch, QueueMessages

FACTS = st.builds(
    Facts,
    virtual_host=st.sampled_from(["/", "other"]),
    exchange=st.sampled_from(["", "x"]),
    routing_key=st.text(max_size=3),
    format=st.just("amqp-0-9"),
    persistent=st.booleans(),
    priority=st.integers(0, 255),
    ttl_ms=st.none() | st.integers(0, 1 << 62),
    not_before=st.none() | st.integers(0, 1 << 62),
    publisher=st.sampled_from(["", "1.2"]),
)
FEW = st.lists(FACTS, min_size=1, max_size=4)
INDEXES = st.sets(st.integers(0, 40)).map(sorted)


def test_every_fact_is_on_the_wire() -> None:
    """A fact is a field of the same name in the message that carries it."""
    assert tuple(field.name for field in MessageFacts.DESCRIPTOR.fields) == Facts._fields


@given(FACTS)
def test_facts(facts: Facts) -> None:
    """The codec loses nothing: no expiration is another than that of 0 ms."""
    assert from_bytes(to_bytes(facts)) == facts


@given(FACTS, st.text(max_size=3) | st.integers(100, 20_000).map("ö".__mul__))
def test_facts_are_written_as_protobuf_writes_them(facts: Facts, key: str) -> None:
    """To the byte, however long the routing key is: equal messages have equal bytes."""
    facts = facts._replace(routing_key=key)
    assert to_bytes(facts) == MessageFacts(**facts._asdict()).SerializeToString(deterministic=True)
    assert from_bytes(to_bytes(facts)) == facts


def test_what_properties_say() -> None:
    """Facts are an address and what the format has read."""
    assert Attributes._fields[:4] == Facts._fields[4:8]
    said = Attributes(persistent=True, priority=4, ttl_ms=0, user_id="guest")
    assert facts_of("/", "x", "k", "amqp-0-9", said) == Facts("/", "x", "k", "amqp-0-9", True, 4, 0)


@given(FEW, st.lists(st.binary(max_size=3), min_size=1, max_size=4), st.data())
def test_any_mixture(few: list[Facts], properties: list[bytes], data: st.DataObject) -> None:
    """One value for all, one for each, a table with indexes: the reader need not know which."""
    count = data.draw(st.integers(1, 30))
    its_facts = [data.draw(st.sampled_from(few)) for _ in range(count)]
    its_properties = [data.draw(st.sampled_from(properties)) for _ in range(count)]
    for kind in (PublishBatch, DeliveryBatch):
        batch = kind(uids=range(count))
        columns.put(batch, its_facts, its_properties)
        read = kind.FromString(batch.SerializeToString())
        assert (columns.facts_in(read), columns.properties_in(read)) == (its_facts, its_properties)


def _new(count: int, **said: object) -> list[Facts]:
    return [Facts("/", "x", f"new {number}", "f")._replace(**said) for number in range(count)]  # type: ignore[arg-type]


@given(FEW, st.lists(st.text(max_size=3), min_size=8, max_size=20), st.booleans())
def test_any_mixture_with_keys(few: list[Facts], keys: list[str], one: bool) -> None:
    """Keys in a column or not: the reader need not know which; of what is persistent there is no such column."""
    its = few[:1] if one else few
    facts = [its[number % len(its)]._replace(routing_key=key) for number, key in enumerate(keys)]
    for kind in (PublishBatch, DeliveryBatch):
        batch = kind(uids=range(len(facts)))
        columns.put(batch, facts, [b""] * len(facts), keys=True)
        assert columns.facts_in(kind.FromString(batch.SerializeToString())) == facts
        assert not (batch.keys and any(each.persistent for each in facts))


def test_keys_that_are_new_are_a_column() -> None:
    """Where the reader knows of it, and nothing is persistent; what has come before is a table."""
    for said, keys, facts in (({}, True, 1), ({}, False, 9), ({"persistent": True}, True, 9)):
        batch = PublishBatch(uids=range(9))
        columns.put(batch, _new(9, **said), [b""] * 9, keys=keys)
        assert (len(batch.facts), len(batch.keys)) == (facts, 9 if facts == 1 else 0)
    noted = _new(9)
    facts_table.note(noted)
    batch = PublishBatch(uids=range(9))
    columns.put(batch, noted, [b""] * 9, keys=True)
    assert (len(batch.facts), len(batch.keys)) == (9, 0)
    assert columns.facts_in(batch) == noted


def test_what_repeats_is_said_once() -> None:
    """A hundred keys in turn are a table of a hundred, however many messages there are; equal ones are one value."""
    few = [Facts("/", "x", str(number), "amqp-0-9") for number in range(100)]
    batch = PublishBatch(uids=range(1000))
    columns.put(batch, few * 10, [b"p"] * 1000)
    assert (len(batch.facts), len(batch.facts_of), len(batch.properties)) == (100, 1000, 1)
    assert not batch.properties_of


_KEYS = ["a", "b", "c"]


@pytest.mark.parametrize(
    "fields",
    [
        {"facts": [b""] * 2},
        {"facts": [b""], "facts_of": [0]},
        {"facts": [b""], "keys": _KEYS[1:]},
        {"facts": [b""] * 3, "keys": _KEYS},
        {"facts": [], "keys": _KEYS},
        {"facts": [b""], "facts_of": [0, 0, 0], "keys": _KEYS},
        {"facts": [to_bytes(Facts("/", "x", "", "f", persistent=True))], "keys": _KEYS},
    ],
)
def test_a_batch_that_contradicts_itself(fields: dict[str, list[object]]) -> None:
    """It is refused as a whole, and nothing of it is guessed."""
    batch = PublishBatch(uids=range(3), **fields)  # type: ignore[arg-type]
    with pytest.raises(InternalError):
        columns.facts_in(batch)


@given(INDEXES)
def test_indexes(indexes: list[int]) -> None:
    """As a range or as a list, on the wire and off it, they choose the same."""
    column = [str(number) for number in range(41)]
    wire = QueueMessages(**choice(indexes))
    assert list(chosen(QueueMessages.FromString(wire.SerializeToString()))) == indexes
    assert list(condensed(indexes)) == indexes
    assert list(pick(column, condensed(indexes))) == list(pick(column, indexes)) == [column[at] for at in indexes]
    taken = list(runs(condensed(indexes)))
    assert [at for first, count in taken for at in range(first, first + count)] == indexes
    assert all(first + count < following for (first, count), (following, _) in pairwise(taken))
