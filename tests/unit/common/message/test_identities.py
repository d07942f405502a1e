"""What names many messages is what names each of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from services.common.message.amqp_0_9 import FORMAT
from services.common.message.amqp_0_9.fields import may_say, seeming, seeming_of
from services.common.message.amqp_0_9.identities import named_together
from services.common.message.identities import Named, each
from services.common.message.remembered import LONGEST

_IDS = st.none() | st.sampled_from(["", "a", "b", "ab", "é", "x" * 200])
_TRACES = st.sampled_from(
    [
        f"00-{1:032x}-{1:016x}-01",
        f"00-{2:032x}-{3:016x}-00",
        f"01-{2:032x}-{3:016x}-00",
        f"00-{0:032x}-{3:016x}-00",
        f"00-{2:032x}-{0:016x}-00",
        f"00-{1:032X}-{0xA:016X}-01",
        "é" * 55,
        "",
    ]
)
_HEADERS = st.fixed_dictionaries(
    {}, optional={"traceparent": _TRACES | st.integers(0, 5), "tracestate": st.just("a=b"), "n": st.integers(0, 5)}
)
_PROPERTIES = st.builds(
    commands.Basic.Properties,
    headers=st.none() | _HEADERS | st.builds(lambda inner: {"in": inner}, _HEADERS),
    priority=st.none() | st.integers(0, 255),
    correlation_id=_IDS,
    message_id=_IDS,
)
_COLUMNS = st.lists(_PROPERTIES.map(lambda properties: properties.marshal()), min_size=1, max_size=6) | st.builds(
    lambda of, ids, traces: [
        commands.Basic.Properties(**of, message_id=name, headers={"traceparent": trace}).marshal()
        for name, trace in zip(ids, traces, strict=False)
    ],
    st.fixed_dictionaries({}, optional={"priority": st.just(4), "correlation_id": st.just("c")}),
    st.lists(st.sampled_from(["a", "b", "é"]), min_size=1, max_size=6),
    st.lists(_TRACES, min_size=1, max_size=6),
)
_MUTATIONS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1 << 10), st.integers(0, 255)), max_size=2)


def _changed(column: list[bytes], mutations: Any) -> list[bytes]:
    """Some octets of them."""
    column = list(column)
    for which, where, value in mutations:
        octets = bytearray(column[which % len(column)])
        octets[where % len(octets)] = value
        column[which % len(column)] = bytes(octets)
    return column


def _by_message(found: Any) -> set[tuple[int, str, str]]:
    return {(index, kind, name) for kind, indexes, ids in found for index, name in zip(indexes, ids, strict=True)}


def _trace(number: int) -> bytes:
    return commands.Basic.Properties(headers={"traceparent": f"00-{number:032x}-{number:016x}-01"}).marshal()


@pytest.mark.fuzz
@given(_COLUMNS, _MUTATIONS)
def test_they_are_those_of_each(column: list[bytes], mutations: Any) -> None:
    """Any properties, some octets of them changed: as they are read one by one, and nothing of what cannot be read."""
    column = _changed(column, mutations)
    assert _by_message(FORMAT.identities_of(column)) == _by_message(each(FORMAT.identities, column))


@pytest.mark.fuzz
@given(st.lists(_PROPERTIES.map(lambda properties: properties.marshal()), min_size=1, max_size=6), st.booleans())
def test_what_is_kept_is_what_each_keeps(column: list[bytes], long: bool) -> None:
    """What of many properties has to be kept for their ids is what each by itself would keep."""
    if long:
        headers = {"x": "y" * LONGEST, "traceparent": f"00-{1:032x}-{1:016x}-01"}
        column.append(commands.Basic.Properties(headers=headers, message_id="m").marshal())
    kept = FORMAT.identifying_of(column) or [b""] * len(column)
    assert list(kept) == [FORMAT.identifying(properties) for properties in column]


@pytest.mark.fuzz
@given(_COLUMNS, _MUTATIONS)
def test_what_they_seem_to_say_is_what_each_seems_to(column: list[bytes], mutations: Any) -> None:
    """Whether publishers trace them, and more, is seen of a column as it is of each."""
    column = _changed(column, mutations)
    joined = b"".join(column)
    may = may_say(joined)
    found = seeming_of(column, joined) or [0] * len(column)
    assert list(found) == [seeming(properties, may) for properties in column]


def test_those_that_are_built_alike_are_not_looked_at_one_by_one() -> None:
    """Ids and contexts, each another, are made out together; another length, or another table, takes a look at each."""
    traced = [_trace(number) for number in range(1, 4)]
    assert named_together(traced) == [Named("trace_id", range(3), [f"{number:032x}" for number in range(1, 4)])]
    ids = [commands.Basic.Properties(message_id=name).marshal() for name in "abc"]
    assert named_together(ids) == [Named("message_id", range(3), ["a", "b", "c"])]
    assert named_together([*traced, *ids]) is None
    assert named_together([_trace(1), _trace(1).replace(b"traceparent", b"tracecontxt")]) is None
