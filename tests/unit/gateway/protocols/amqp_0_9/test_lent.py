"""What was read and is lent: the engine copies what it keeps, and finds the same as in bytes of its own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, heartbeat

from services.gateway.protocols.amqp_0_9.engine import AmqpEngine
from services.gateway.vocabulary import Publish, Request, Settle
from tests.support.amqp_playbook import Playbook, content, written

_LARGE = b"".join(number.to_bytes(2, "big") for number in range(30_000))
_STREAM = (
    content(1, _LARGE, frame_size=len(_LARGE)) * 3
    + content(1, _LARGE[2:], frame_size=len(_LARGE), message_id="1")
    + content(2, _LARGE, frame_size=25_000)
    + content(1, b"", priority=3)
    + written(1, *(commands.Basic.Ack(tag, False) for tag in range(1, 9)), commands.Basic.Nack(9, True, True))
    + content(2, _LARGE[4:], frame_size=len(_LARGE), routing_key="other") * 2
    + content(1, b"d", message_id="1")
    + written(2, commands.Queue.Declare(queue="q"))
    + written(0, heartbeat.Heartbeat())
    + content(1, _LARGE, frame_size=len(_LARGE)) * 2
    + written(2, commands.Channel.Close(200, "", 0, 0))
    + content(1, _LARGE, frame_size=len(_LARGE))
)


def _lend(engine: AmqpEngine, data: bytes) -> list[Request]:
    """The memory is used for something else as soon as it was looked at."""
    memory = bytearray(data)
    requests = engine.receive(memoryview(memory))
    memory[:] = bytes(len(memory))
    return requests


def _give(engine: AmqpEngine, data: bytes) -> list[Request]:
    return engine.receive(data)


def _found(reads: Any, data: bytes, cuts: list[int]) -> tuple[list[object], bytes]:
    """The requests of each channel, without what depends on the cuts, and what is sent.

    The cuts decide how channels lie among each other, too (see `batches`).
    """
    book = Playbook().running(1, 2)
    book.client(2, commands.Confirm.Select())
    flat: list[object] = []
    for start, end in pairwise([0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
        requests = reads(book.engine, data[start:end])
        while book.engine.unread:
            requests += book.engine.receive(b"")
        for request in requests:
            if isinstance(request, Publish):
                columns = zip(request.kinds, request.properties, request.bodies, strict=True)
                assert all(type(body) is bytes for body in request.bodies)
                numbers = range(request.first, request.first + len(request.bodies))
                rows = zip(numbers, columns, strict=True)
                flat += [
                    (request.session, number if request.first else 0, kind.facts, kind.attributes, *pair)
                    for number, (kind, *pair) in rows
                ]
            elif isinstance(request, Settle) and request.first:
                flat += [(request.session, tag) for tag in range(request.first, request.last + 1)]
            else:
                flat.append(request)
    return sorted(flat, key=_channel), book.raw()


def _channel(found: Any) -> int:
    return int(found[0] if isinstance(found, tuple) else getattr(found, "session", 0))


def test_a_read_of_large_messages() -> None:
    """All in one read, and the memory is used again at once."""
    assert _found(_lend, _STREAM, []) == _found(_give, _STREAM, [])


@pytest.mark.fuzz
@given(st.lists(st.integers(0, len(_STREAM)), max_size=12))
def test_any_cuts(cuts: list[int]) -> None:
    """Wherever reads end: in a head, a method, a body, in front of an end octet."""
    assert _found(_lend, _STREAM, cuts) == _found(_give, _STREAM, [])


@pytest.mark.fuzz
@given(
    st.lists(st.tuples(st.integers(0, len(_STREAM)), st.integers(0, 255)), min_size=1, max_size=3),
    st.lists(st.integers(0, len(_STREAM)), max_size=6),
)
def test_bad_input(mutations: list[tuple[int, int]], cuts: list[int]) -> None:
    """The same close, behind the same requests, as where it comes in bytes of its own."""
    data = bytearray(_STREAM)
    for position, value in mutations:
        data[position % len(data)] = value
    assert _found(_lend, bytes(data), cuts) == _found(_give, bytes(data), cuts)


def test_small_messages_are_not_read_from_it() -> None:
    """What is behind the first of them is copied, once, and read in portions as any other read is."""
    message = content(1, b"small", routing_key="q")
    book = Playbook().running(1)
    requests = _lend(book.engine, content(1, _LARGE, frame_size=len(_LARGE)) + message * 2000)
    assert [len(body) for request in requests if isinstance(request, Publish) for body in request.bodies] == [60_000]
    bodies = list[bytes]()
    while book.engine.unread:
        for request in book.engine.receive(b""):
            assert isinstance(request, Publish)
            bodies += request.bodies
    assert bodies == [b"small"] * 2000


def test_a_channel_that_was_closed_and_opened_again() -> None:
    """What is read behind that belongs to the new one, which did not ask for confirms."""
    book = Playbook().running(1, 2)
    book.does(2, commands.Confirm.Select())
    message = content(2, _LARGE, frame_size=len(_LARGE))
    _lend(book.engine, message * 3)
    book.does(2, commands.Channel.Close(200, "", 0, 0))
    book.does(2, commands.Channel.Open())
    requests = _lend(book.engine, message * 2)
    assert [(request.first, len(request.bodies)) for request in requests if isinstance(request, Publish)] == [(0, 2)]


def _end_of_first_body() -> int:
    return len(content(1, _LARGE, frame_size=len(_LARGE))) - 1


@pytest.mark.parametrize("step", [1_000, 50_000, len(_STREAM)])
def test_a_wrong_end_octet_of_a_large_body(step: int) -> None:
    """Section 4.2.3: the connection ends with 501, and nothing that comes behind it is published."""
    data = bytearray(_STREAM)
    data[_end_of_first_body()] = 0
    book = Playbook().running(1, 2)
    requests = [
        request for at in range(0, len(data), step) for request in _lend(book.engine, bytes(data[at : at + step]))
    ]
    assert not [request for request in requests if isinstance(request, Publish)]
    assert book.closed_connection()[0] == 501


@pytest.mark.parametrize("step", [1_000, 50_000, len(_STREAM)])
def test_a_body_larger_than_announced(step: int) -> None:
    """Section 4.2.6.2: the connection ends with 505."""
    longer = (
        written(1, commands.Basic.Publish(0, "", "q"))
        + content(1, _LARGE[:-1], frame_size=len(_LARGE))[
            len(written(1, commands.Basic.Publish(0, "", "q"))) : -len(_LARGE) - 7
        ]
    )
    data = longer + written(1, _LARGE) + _STREAM
    book = Playbook().running(1, 2)
    requests = [request for at in range(0, len(data), step) for request in _lend(book.engine, data[at : at + step])]
    assert not [request for request in requests if isinstance(request, Publish)]
    assert book.closed_connection()[0] == 505
