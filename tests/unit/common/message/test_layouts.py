"""The attributes of many properties are those of each of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from services.common.errors import BrokerError
from services.common.message.amqp_0_9 import FORMAT
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


def test_what_was_learnt_is_bounded() -> None:
    """Whatever comes: nothing is kept of what never comes again."""
    for number in range(20_000):
        expiration = commands.Basic.Properties(expiration=str(number), message_id="x" * (number % 200)).marshal()
        assert FORMAT.attributes_of([expiration, b"\0\0"]) == [Attributes(ttl_ms=number), Attributes()]
    layouts = [layout for same in FORMAT._layouts._layouts.values() for layout in same]
    assert sum(len(layout.known) for layout in layouts) <= 4096
