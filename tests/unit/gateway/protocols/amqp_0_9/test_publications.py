"""Publishes on their way in."""

from __future__ import annotations

import gc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, heartbeat

from services.common.message.facts import Attributes, Facts
from services.gateway.protocols.amqp_0_9 import publications
from services.gateway.protocols.amqp_0_9.method import encode
from services.gateway.protocols.amqp_0_9.methods import basic
from services.gateway.vocabulary import Kind, Publish, Request
from tests.support.amqp_playbook import Playbook, content, written


def _bodies(requests: list[Request]) -> list[bytes]:
    return [body for request in requests if isinstance(request, Publish) for body in request.bodies]


def test_publishes_alike_are_of_one_kind() -> None:
    """Same target and same meaning of the properties: one request, in order, and one object for what they are."""
    data = b"".join(
        content(1, b"%d" % number, routing_key="q", delivery_mode=2, message_id=str(number)) for number in range(50)
    )
    [publish] = Playbook().running().engine.receive(data)
    assert isinstance(publish, Publish)
    assert publish.bodies == [b"%d" % number for number in range(50)]
    assert len(publish.properties) == 50
    [kind] = set(publish.kinds)
    assert (publish.session, kind.attributes) == (1, Attributes(persistent=True))
    assert kind.facts == Facts("/", "", "q", "amqp-0-9", persistent=True)


def test_equal_properties_are_one_object() -> None:
    """Also of a message that comes in parts: a column of one object is carried, weighed and recorded as one value."""
    playbook = Playbook().running()
    data = b"".join(content(1, b"x" * 100, routing_key="q", delivery_mode=2) for _ in range(30))
    for first, end in pairwise((0, 700, 1500, len(data))):
        [publish] = playbook.engine.receive(data[first:end])
        assert isinstance(publish, Publish)
        assert len(publish.properties) > 1
        assert len(set(map(id, publish.properties))) == 1


_FEW = 32


def test_kinds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all targets together: however many priorities messages of however many keys have."""
    monkeypatch.setattr(publications, "_REMEMBERED", _FEW)
    engine = Playbook().running().engine
    for number in range(60):
        stream = [content(1, b"x", routing_key=f"bounded {number}", priority=priority) for priority in range(30)]
        [publish] = engine.receive(b"".join(stream))
        assert isinstance(publish, Publish)
        assert [kind.facts.priority for kind in publish.kinds] == list(range(30))
    gc.collect()
    kept = [
        each for each in gc.get_objects() if isinstance(each, Kind) and each.facts.routing_key.startswith("bounded ")
    ]
    assert len(kept) <= 2 * _FEW + 30  # those that are remembered, of shapes too, and those of the last request


@pytest.mark.parametrize(
    "other",
    [
        content(1, b"b", routing_key="other"),
        content(1, b"b", exchange="other"),
        content(1, b"b", mandatory=True),
        content(1, b"b", priority=1),
    ],
    ids=["key", "exchange", "mandatory", "attributes"],
)
def test_what_differs_is_of_another_kind(other: bytes) -> None:
    """Messages of a kind are alike in everything that the broker acts on; one request has them all."""
    [publish] = Playbook().running().engine.receive(content(1, b"a") + other + content(1, b"c"))
    assert isinstance(publish, Publish)
    assert publish.bodies == [b"a", b"b", b"c"]
    assert publish.kinds[0] is publish.kinds[2] is not publish.kinds[1]


def test_another_channel_begins_another_request() -> None:
    """A request is of one session, and has all that this publishes in one read."""
    requests = Playbook().running(1, 2).engine.receive(content(1, b"a") + content(2, b"b") + content(1, b"c"))
    assert [(request.session, _bodies([request])) for request in requests] == [(1, [b"a", b"c"]), (2, [b"b"])]


def test_a_request_between_publishes_parts_them() -> None:
    """Order within a session is kept."""
    data = content(1, b"a") + written(1, commands.Basic.Qos(prefetch_count=1)) + content(1, b"b")
    requests = Playbook().running().engine.receive(data)
    assert [type(request).__name__ for request in requests] == ["Publish", "Limit", "Publish"]


def test_bodies_of_every_size() -> None:
    """None, one frame, exactly one frame, and several."""
    sizes = [0, 1, 4087, 4088, 4089, 10_000]
    data = b"".join(content(1, b"x" * size) for size in sizes)
    assert [len(body) for body in _bodies(Playbook().running().engine.receive(data))] == sizes


def test_empty_body_frames_are_no_harm() -> None:
    """A body frame may be empty while the body is not complete (section 4.2.6.2)."""
    parts = content(1, b"ab", frame_size=1)
    empty = written(1, b"")
    first = parts.index(b"\x03\x00\x01")
    assert _bodies(Playbook().running().engine.receive(parts[:first] + empty + parts[first:])) == [b"ab"]


def test_channels_interleave() -> None:
    """The frames of contents on different channels may alternate, with heartbeats between them."""
    one, two = content(1, b"a" * 300, frame_size=100), content(2, b"b" * 300, frame_size=100)
    beat = written(0, heartbeat.Heartbeat())
    frame = 8 + 100
    data = one[: -2 * frame] + two[:-frame] + beat + one[-2 * frame :] + two[-frame:]
    assert _bodies(Playbook().running(1, 2).engine.receive(data)) == [b"a" * 300, b"b" * 300]


def test_many_targets_are_parsed_right() -> None:
    """More different methods than are remembered, with some that come back."""
    keys = [f"key-{number % 7 if number % 2 else number}" for number in range(20_000)]
    [publish] = Playbook().running().engine.receive(b"".join(content(1, b"x", routing_key=key) for key in keys))
    assert isinstance(publish, Publish)
    assert [kind.facts.routing_key for kind in publish.kinds] == keys


def test_a_closed_channel_publishes_nothing() -> None:
    """What was recognised on a channel is forgotten with it."""
    book = Playbook().running()
    assert _bodies(book.engine.receive(content(1, b"a"))) == [b"a"]
    book.engine.succeed(book.asks(1, commands.Channel.Close(200, "", 0, 0)))
    book.raw()
    assert _bodies(book.engine.receive(content(1, b"b"))) == []
    assert book.closed_connection()[0] == 504


def test_a_reopened_channel_publishes_again() -> None:
    """The number may be used again."""
    book = Playbook().running()
    book.engine.receive(content(1, b"a"))
    book.does(1, commands.Channel.Close(200, "", 0, 0))
    book.does(1, commands.Channel.Open())
    assert _bodies(book.engine.receive(content(1, b"b"))) == [b"b"]


def test_large_bodies_in_small_pieces() -> None:
    """A body over many frames that arrives in drops is one body."""
    body = bytes(range(256)) * 4096
    data = content(1, body)
    book = Playbook().running()
    requests: list[Request] = []
    for start in range(0, len(data), 999):
        requests += book.engine.receive(data[start : start + 999])
    assert _bodies(requests) == [body]


_STREAM = (
    content(1, b"a" * 200) * 3
    + content(1, b"", priority=3)
    + content(2, b"c" * 9000)
    + written(1, *(commands.Basic.Ack(tag, False) for tag in range(1, 9)), commands.Basic.Nack(9, True, True))
    + content(1, b"d", message_id="1")
    + content(1, b"e", message_id="2")
    + written(2, commands.Queue.Declare(queue="q"))
    + written(0, heartbeat.Heartbeat())
    + content(2, b"f" * 4088)
)


def _flattened(requests: list[Request]) -> list[object]:
    """Requests without what depends on the split: publishes are taken apart."""
    flat: list[object] = []
    for request in requests:
        if isinstance(request, Publish):
            assert request.bodies, "nobody publishes nothing"
            columns = zip(request.kinds, request.properties, request.bodies, strict=True)
            flat += [(request.session, kind.facts, kind.attributes, *pair) for kind, *pair in columns]
        elif type(request).__name__ == "Settle":
            settle: object = request
            first, last = settle.first, settle.last  # type: ignore[attr-defined]
            flat += [(request.session, tag) for tag in range(first, last + 1)] if first else [settle]
        else:
            flat.append(request)
    return flat


@pytest.mark.fuzz
@given(st.lists(st.integers(0, len(_STREAM)), max_size=40))
def test_any_split_of_the_stream_gives_the_same_requests(cuts: list[int]) -> None:
    """Where reads end does not matter."""
    whole = _flattened(Playbook().running(1, 2).engine.receive(_STREAM))
    edges = [0, *sorted(cuts), len(_STREAM)]
    book = Playbook().running(1, 2)
    requests: list[Request] = []
    for start, end in pairwise(edges):
        requests += book.engine.receive(_STREAM[start:end])
    assert _flattened(requests) == whole


def test_byte_by_byte_gives_the_same_requests() -> None:
    """The worst split."""
    book = Playbook().running(1, 2)
    requests = [request for start in range(len(_STREAM)) for request in book.engine.receive(_STREAM[start : start + 1])]
    assert _flattened(requests) == _flattened(Playbook().running(1, 2).engine.receive(_STREAM))


_SHORT = st.text(max_size=60).filter(lambda text: len(text.encode()) < 256)


@given(_SHORT | st.just(""), _SHORT | st.integers(0, 255).map("k".__mul__), st.booleans(), st.booleans())
def test_the_hot_way_reads_what_the_general_one_does(
    exchange: str, routing_key: str, mandatory: bool, immediate: bool
) -> None:
    """A basic.publish of any names and flags: an offset that is wrong may fit some lengths by chance."""
    payload = encode(basic.Publish(0, exchange, routing_key, mandatory, immediate))
    assert publications._plain(payload) == (exchange, routing_key, mandatory, immediate)
    assert publications._decoded(payload) == (exchange, routing_key, mandatory, immediate)
    for end in range(len(payload)):
        assert publications._plain(payload[:end]) is None
    assert publications._plain(payload + b"\0") is None


def test_what_was_given_is_not_kept() -> None:
    """An engine has no messages any more when it has given them: its connection may be idle from then on."""
    engine = Playbook().running(1, 2).engine
    for stream in (content(1, b"hot"), content(2, b"cold" * 2000)):
        [publish] = engine.receive(stream)
        assert isinstance(publish, Publish)
        bodies = publish.bodies
        del publish
        gc.collect()
        holders = [each for each in gc.get_referrers(bodies) if isinstance(each, Publish | tuple)]
        assert holders == []


def test_a_channel_that_is_opened_again_is_as_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was remembered of the one that had its number before gives way to what comes on this one."""
    book, data = Playbook().running(), content(1, b"x") * 10
    for _ in range(2):
        assert len(_bodies(book.engine.receive(data))) == 10
    for method in (commands.Channel.Close(200, "", 0, 0), commands.Channel.Open()):
        book.does(1, method)
    for _ in range(2):
        assert len(_bodies(book.engine.receive(data))) == 10
    monkeypatch.setattr(book.engine, "_frame", None)
    monkeypatch.setattr(publications.Publications, "_recognise", lambda *_, **__: None)
    assert len(_bodies(book.engine.receive(data))) == 10


def test_a_message_that_comes_in_parts() -> None:
    """Of a shape that is known: nothing is published before it is whole, and then one message is."""
    engine, one = Playbook().running().engine, content(1, b"x" * 3000, routing_key="q")
    assert [len(_bodies(engine.receive(one))) for _ in range(3)] == [1, 1, 1]
    for cut in (len(one) - 1, len(one) - 1500, 100):
        assert engine.receive(one[:cut]) == []
        assert _bodies(engine.receive(one[cut:])) == [b"x" * 3000]
