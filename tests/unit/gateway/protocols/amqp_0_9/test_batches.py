"""What channels publish in turn has one request for each channel, and nothing comes in another order than it may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from services.gateway.protocols.amqp_0_9.batches import apart
from services.gateway.protocols.amqp_0_9.channel import Channel
from services.gateway.vocabulary import Publish, Request, Settle
from tests.support.amqp_playbook import Playbook, content, written

_CHANNELS = (1, 2, 3)
_ALONE = commands.Basic.Qos(prefetch_count=1)
_OTHERS: Sequence[Any] = (
    _ALONE,
    commands.Confirm.Select(),
    commands.Tx.Select(),
    commands.Tx.Commit(),
    commands.Channel.Flow(active=False),
    commands.Queue.Declare(queue="q"),
    commands.Basic.Get(queue="q"),
    commands.Basic.Ack(1, False),
    commands.Basic.Ack(2, False),
    commands.Basic.Nack(9, True, True),
    commands.Basic.Ack(0, False),  # an error of the channel
    commands.Basic.Qos(prefetch_size=1),  # likewise
    commands.Channel.Close(200, "", 0, 0),
    commands.Channel.Open(),  # where it is open: an error of the connection
)
_USUAL = 12


def _frames(data: bytes) -> list[bytes]:
    frames = []
    while data:
        end = 8 + int.from_bytes(data[3:7], "big")
        frames.append(data[:end])
        data = data[end:]
    return frames


def _on(channel: int) -> st.SearchStrategy[list[bytes]]:
    """Frames of a publish, or of another method."""
    publishes = st.builds(
        content,
        st.just(channel),
        st.sampled_from([b"x", b"y", b"", b"long" * 20]),
        routing_key=st.sampled_from(["a", "b", "new"]) | st.integers(0, 99).map(str),
        mandatory=st.sampled_from([False, False, False, True]),
        message_id=st.sampled_from([None, "1", "2", "10"]),
        expiration=st.sampled_from([None, None, None, None, "none"]),
        frame_size=st.sampled_from([4096, 4096, 4096, 10]),
    )
    others = st.sampled_from(_OTHERS[:_USUAL]) | st.sampled_from(_OTHERS)
    return st.one_of(*[publishes] * 6, others.map(lambda method: written(channel, method))).map(_frames)


@st.composite
def _interleaved(draw: st.DrawFn) -> list[bytes]:
    """The frames of each channel in their order, in turn with those of the others."""
    said = {
        channel: [frame for frames in draw(st.lists(_on(channel), max_size=15)) for frame in frames]
        for channel in _CHANNELS
    }
    turns = draw(st.permutations([channel for channel, frames in said.items() for _ in frames]))
    return [said[channel].pop(0) for channel in turns]


def _message(request: Publish, at: int) -> object:
    kind = request.kinds[at]
    said = kind.facts, kind.attributes, kind.mandatory, kind.immediate, kind.more_keys
    return (request.first and request.first + at, *said, request.properties[at], request.bodies[at])


def _of(request: Request) -> list[object]:
    """Messages one by one, settlements likewise."""
    if isinstance(request, Publish):
        assert request.bodies, "nobody publishes nothing"
        return [_message(request, at) for at in range(len(request.bodies))]
    if isinstance(request, Settle) and request.first:
        return [(tag, request.outcome) for tag in range(request.first, request.last + 1)]
    return [request]


def _stretches(requests: Sequence[Request]) -> list[object]:
    """What stands between requests that all others keep their place to: by channel. And these."""
    found, stretch = list[object](), dict[int, list[object]]()
    for request in requests:
        if isinstance(request, Publish | Settle):
            stretch.setdefault(request.session, []).extend(_of(request))
        else:
            found += [stretch, request]
            stretch = {}
    return [*found, stretch]


def _read(*pieces: bytes) -> tuple[list[Request], bytes]:
    """The requests, and what is sent."""
    book, requests = Playbook().running(*_CHANNELS), list[Request]()
    for piece in pieces:
        requests += book.engine.receive(piece)
        while book.engine.unread:
            requests += book.engine.receive(b"")
    return requests, b"".join(map(bytes, book.engine.data_to_send()))


@pytest.mark.fuzz
@given(_interleaved())
def test_any_interleaving_gives_what_one_frame_at_a_time_gives(frames: list[bytes]) -> None:
    """The same on each channel, in the same order, between the same requests of all; and the same answers."""
    together, answers = _read(b"".join(frames))
    alone, its_answers = _read(*frames)
    assert _stretches(together) == _stretches(alone)
    assert answers == its_answers
    if all(isinstance(request, Publish) for request in together):
        assert len(together) <= len(_CHANNELS)


@pytest.mark.parametrize("differ", [False, True], ids=["alike", "ids"])
def test_channels_in_turn_have_a_request_each(differ: bool) -> None:
    """However many messages lie in a read; each channel numbers its own."""
    book = Playbook().running(*_CHANNELS)
    for channel in _CHANNELS[1:]:
        book.does(channel, commands.Confirm.Select())
    for read in range(3):
        said = [(1 + number % 3, str(number)) for number in range(read * 300, read * 300 + 300)]
        data = b"".join([content(at, b"x", message_id=its if differ else None) for at, its in said])
        requests = book.engine.receive(data)
        assert [(each.session, len(_of(each))) for each in requests] == [(1, 100), (2, 100), (3, 100)]
        assert [getattr(each, "first", None) for each in requests] == [0, 1 + 100 * read, 1 + 100 * read]


def test_a_request_of_another_channel_parts_them() -> None:
    """What it asks for is not overtaken: a queue may be purged between two publishes to it."""
    data = content(1, b"a") + written(2, _ALONE) + content(1, b"b")
    requests = Playbook().running(1, 2).engine.receive(data)
    assert [type(request).__name__ for request in requests] == ["Publish", "Limit", "Publish"]


def test_settlements_part_what_their_own_channel_publishes() -> None:
    """What is settled there has its place among what is published there; others have nothing to do with it."""
    ack = written(1, commands.Basic.Ack(1, False))
    requests = Playbook().running(1, 2).engine.receive((content(1, b"a") + content(2, b"b") + ack) * 2)
    assert [(type(each).__name__, each.session) for each in requests] == [
        ("Publish", 1),
        ("Publish", 2),
        ("Settle", 1),
        ("Publish", 1),
        ("Settle", 1),
    ]


def test_what_belongs_to_one_channel_is_given_as_it_is() -> None:
    """Most connections publish on one: no message is looked at for its sake."""
    channel, columns = Channel(1), ([], [b"p"] * 3, [b"b"] * 3)
    [(its, given_back)] = apart([channel] * 3, columns)  # type: ignore[arg-type]
    assert its is channel
    assert given_back is columns


def test_publishes_before_confirms_were_asked_for_have_no_number() -> None:
    """Numbers begin with the first publish behind confirm.select, also where one read has both."""
    book = Playbook().running()
    data = content(1, b"a") + content(1, b"b") + written(1, commands.Confirm.Select()) + content(1, b"c")
    before, _, behind = book.engine.receive(data)
    assert isinstance(before, Publish)
    assert isinstance(behind, Publish)
    assert (before.first, behind.first) == (0, 1)
