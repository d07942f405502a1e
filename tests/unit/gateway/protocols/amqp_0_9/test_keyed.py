"""Publishes that differ in their keys are read as they would be one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from services.gateway.protocols.amqp_0_9.keyed import Keyed
from services.gateway.vocabulary import Publish
from tests.support.amqp_playbook import Playbook, content, written

_KEYS = st.sampled_from(["", "a", "b", "new.1", "new.2", "é" * 100, "k" * 255]) | st.integers(0, 10**9).map(str)
_PUBLISHES = st.builds(
    content,
    st.sampled_from([1, 1, 1, 1, 2]),
    st.sampled_from([b"x", b"y", b"\xce", b"", b"long" * 20]),
    routing_key=_KEYS,
    exchange=st.sampled_from(["", "", "", "e", "amq.topic"]),
    mandatory=st.sampled_from([False, False, False, True]),
    priority=st.sampled_from([None, None, None, 1]),
)
_OTHERS = st.sampled_from([written(1, commands.Basic.Qos(prefetch_count=1)), written(1, commands.Confirm.Select())])
_STREAMS = st.lists(st.one_of(*[_PUBLISHES] * 9, _OTHERS), max_size=30).map(b"".join)
_MUTATIONS = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=3)


def _read(data: bytes, cuts: list[int]) -> tuple[list[object], bytes]:
    """The requests, without what depends on the cuts, and what is sent."""
    book, flat = Playbook().running(1, 2), []
    for start, end in pairwise([0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
        for request in book.engine.receive(data[start:end]):
            if isinstance(request, Publish):
                columns = zip(request.kinds, request.properties, request.bodies, strict=True)
                for at, (kind, *pair) in enumerate(columns):
                    said = kind.facts, kind.attributes, kind.mandatory, kind.immediate, kind.more_keys
                    flat.append((request.session, request.first and request.first + at, *said, *pair))
            else:
                flat.append(request)
    return flat, b"".join(map(bytes, book.engine.data_to_send()))


@pytest.mark.fuzz
@given(_STREAMS, _MUTATIONS, st.lists(st.integers(0, 1 << 20), max_size=5))
def test_it_reads_what_is_read_without_it(stream: bytes, mutations: Any, cuts: Any) -> None:
    """Any publishes, some bytes of them changed, read in any pieces: the same requests, and the same answers."""
    data = bytearray(stream)
    for position, value in mutations if data else ():
        data[position % len(data)] = value
    found = _read(bytes(data), cuts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Keyed, "take", lambda _self, _channel, _data, position, *_: position)
        assert found == _read(bytes(data), cuts)


def test_what_has_come_again_is_one_object() -> None:
    """So a column in which keys take turns has few values; those that never come back are not kept."""
    engine = Playbook().running().engine
    stream = b"".join(content(1, b"x", routing_key=f"turn {number % 10}") for number in range(50))
    [first], [second] = engine.receive(stream), engine.receive(stream)
    assert isinstance(first, Publish)
    assert isinstance(second, Publish)
    assert len(set(map(id, second.kinds))) == 10
    assert [kind.facts for kind in first.kinds] == [kind.facts for kind in second.kinds]
    new = b"".join(content(1, b"x", routing_key=f"never again {number}") for number in range(50))
    engine.receive(new)
    keyed = engine._channels.publications._keyed
    assert {key for key in keyed._known if key.startswith(b"never")} == set()


def test_most_of_a_stream_of_new_keys_is_read_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two say what the others have in common."""
    book, looked = Playbook().running(), list[int]()
    publications = book.engine._channels.publications
    recognise = publications._recognise
    monkeypatch.setattr(publications, "_recognise", lambda *given: looked.append(given[1]) or recognise(*given))
    stream = b"".join(content(1, b"x", routing_key=f"device.{number}") for number in range(1000))
    [publish] = book.engine.receive(stream)
    assert isinstance(publish, Publish)
    assert [kind.facts.routing_key for kind in publish.kinds] == [f"device.{number}" for number in range(1000)]
    assert {position for position in looked if position < len(stream)} == {
        0,
        len(content(1, b"x", routing_key="device.0")),
    }
