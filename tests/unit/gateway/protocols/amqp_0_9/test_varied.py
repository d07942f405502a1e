"""Publishes that differ in keys, properties and sizes are read as they would be one by one."""

from __future__ import annotations

from itertools import pairwise
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from services.gateway.protocols.amqp_0_9.varied import Varied
from services.gateway.vocabulary import Publish
from tests.support.amqp_playbook import Playbook, content, written

_KEYS = st.sampled_from(["", "a", "b", "new.1", "new.2", "é" * 100, "k" * 255]) | st.integers(0, 10**9).map(str)
_TRACE = f"00-{1:032x}-{1:016x}-01"
_PUBLISHES = st.builds(
    content,
    st.sampled_from([1, 1, 1, 1, 2]),
    st.sampled_from([b"x", b"y", b"\xce", b"", b"long" * 20]),
    routing_key=_KEYS,
    exchange=st.sampled_from(["", "", "", "e", "amq.topic"]),
    mandatory=st.sampled_from([False, False, False, True]),
    priority=st.sampled_from([None, None, None, 1]),
    message_id=st.sampled_from([None, "1", "2", "10", "x" * 255]),
    correlation_id=st.sampled_from([None, None, "1", "10"]),
    expiration=st.sampled_from([None, None, None, "1", "10", "none"]),
    reply_to=st.sampled_from([None, None, "amq.rabbitmq.reply-to", "mine"]),
    headers=st.sampled_from([None, None, {}, {"CC": ["a"]}, {"x-delay": 5}, {"a": "b"}, {"traceparent": _TRACE}]),
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
        patched.setattr(Varied, "take", lambda *given: ([], ([], [], []), given[3]))
        assert found == _read(bytes(data), cuts)


_LONG = st.lists(
    st.tuples(
        st.integers(1, 90),
        st.sampled_from([b"x", b"\xce", b"yy"]),
        st.sampled_from(["%03d", "%03d", "%02d", "k", "é%d"]),
        st.sampled_from([None, "1", "10"]),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.fuzz
@given(_LONG, _MUTATIONS, st.lists(st.integers(0, 1 << 20), max_size=3))
def test_it_reads_many_of_one_size_as_one_by_one(runs: Any, mutations: Any, cuts: Any) -> None:
    """Wherever those that lie together end, and whatever octet of them is another."""
    data = bytearray()
    for count, body, key, message_id in runs:
        for number in range(count):
            said = key % number if "%" in key else key
            data += content(1, body, routing_key=said, message_id=message_id)
    for position, value in mutations:
        data[position % len(data)] = value
    found = _read(bytes(data), cuts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Varied, "take", lambda *given: ([], ([], [], []), given[3]))
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
    varied = engine._channels.publications._varied
    assert [key for known in varied._known.values() for key in known if key.startswith(b"never")] == []


@pytest.mark.parametrize("name", ["routing_key", "message_id", "expiration", "body"])
def test_most_of_a_stream_in_which_each_is_new_is_read_so(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """After two of them, and one for each length of a key."""
    book, looked = Playbook().running(), list[int]()
    publications = book.engine._channels.publications
    recognise = publications._recognise
    monkeypatch.setattr(
        publications, "_recognise", lambda *given, **how: looked.append(given[1]) or recognise(*given, **how)
    )
    said = [f"{number:0{1 + number % 4}}" for number in range(1000)]
    stream = [content(1, b"x" * int(each)) if name == "body" else content(1, b"x", **{name: each}) for each in said]
    [publish] = book.engine.receive(b"".join(stream[1:]))
    assert isinstance(publish, Publish)
    assert len(publish.bodies) == 999
    assert len({position for position in looked if position < sum(map(len, stream[1:]))}) <= 5


def test_each_has_an_expiration_of_its_own() -> None:
    """Whatever keys, exchanges and flags take turns: as they are read one by one."""
    stream = b"".join(
        content(
            1,
            b"x",
            exchange=f"e{number % 2}",
            routing_key=f"é{number % 3}",
            mandatory=number % 5 == 0,
            expiration=f"{number:06}",
            priority=number % 4,
        )
        for number in range(200)
    )
    found = _read(stream, [])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Varied, "take", lambda *given: ([], ([], [], []), given[3]))
        assert found == _read(stream, [])


def test_messages_for_exchanges_in_turn_are_read_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where flags and channels take turns; each goes where it says."""
    book, looked = Playbook().running(1, 2), list[int]()
    publications = book.engine._channels.publications
    recognise = publications._recognise
    monkeypatch.setattr(
        publications, "_recognise", lambda *given, **how: looked.append(given[1]) or recognise(*given, **how)
    )
    said = [(1 + number % 2, f"e{number % 3}", f"id {number}", number % 4 > 1) for number in range(48)]
    stream = b"".join(
        content(session, b"x", exchange=name, message_id=its, mandatory=mandatory)
        for session, name, its, mandatory in said
    )
    requests = [request for request in book.engine.receive(stream) if isinstance(request, Publish)]
    found = [
        (request.session, kind.facts.exchange, properties[3:].decode(), kind.mandatory)
        for request in requests
        for kind, properties in zip(request.kinds, request.properties, strict=True)
    ]
    assert found == sorted(said, key=itemgetter(0))
    assert len({position for position in looked if position < len(stream)}) <= 14


def test_what_lies_behind_refused_publishes_is_not_cut_again_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many channels that end by an error, and much behind them: about as much is cut as without the errors."""
    channels = range(1, 200)
    book, cut = Playbook().running(*channels), list[int]()
    cut_of = Varied._cut

    def counting(*given: Any) -> Any:
        found = cut_of(*given)
        cut.append(len(found.ends))
        return found

    monkeypatch.setattr(Varied, "_cut", counting)
    said = [
        content(at, b"x", expiration="123", message_id=f"{number}{at:04}") for number in range(3) for at in channels
    ]
    book.engine.receive(b"".join(said))
    while book.engine.unread:
        book.engine.receive(b"")
    cut.clear()
    bad = [content(at, b"x", expiration="bad", message_id=f"{at:05}") for at in channels[:98]]
    good = [content(channels[-1], b"x", expiration="123", message_id=f"{number:05}") for number in range(1000)]
    requests = book.engine.receive(b"".join([*bad, *good]))
    while book.engine.unread:
        requests += book.engine.receive(b"")
    assert sum(len(each.bodies) for each in requests if isinstance(each, Publish)) == len(good)
    assert sum(cut) < 4 * (len(bad) + len(good))


def test_a_channel_that_has_the_number_of_another_is_not_taken_for_it() -> None:
    """What it publishes is numbered from 1 once it selects confirms, though its forms came on the other."""
    book = Playbook().running()
    stream = b"".join(content(1, b"x", message_id=f"id {number}") for number in range(10))
    book.does(1, commands.Confirm.Select())
    [before] = book.engine.receive(stream)
    book.does(1, commands.Channel.Close(200, "", 0, 0))
    book.does(1, commands.Channel.Open())
    [after] = book.engine.receive(stream)
    book.does(1, commands.Confirm.Select())
    [confirmed] = book.engine.receive(stream)
    firsts = [(each.first, len(each.bodies)) for each in (before, after, confirmed) if isinstance(each, Publish)]
    assert firsts == [(1, 10), (0, 10), (1, 10)]


def test_what_takes_turns_is_soon_recognised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever each read begins with: after the second read nothing of it is looked through any more."""
    engine = Playbook().running().engine
    stream = b"".join(content(1, b"x", routing_key=f"turn {number % 100}") for number in range(300))
    for _ in range(3):
        assert sum(len(each.bodies) for each in engine.receive(stream) if isinstance(each, Publish)) == 300
    monkeypatch.setattr(Varied, "take", None)
    monkeypatch.setattr(engine._channels.publications, "_recognise", lambda *_, **__: None)
    assert sum(len(each.bodies) for each in engine.receive(stream) if isinstance(each, Publish)) == 300
