"""An end of a connection survives any bytes: it gives events, or ends the connection as the protocol says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.http2.errors import ConnectionFault
from services.common.http2.events import Ended, Headers, Message
from tests.support.http2_transcript import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    REQUEST,
    RESPONSE,
    RST_STREAM,
    TRAILERS,
    Transcript,
    client,
    frame,
    grow,
    long,
    messages,
    read,
    server,
    settings,
)


def _said(*, by_client: bool) -> list[bytes]:
    """The frames of a good conversation, after the preface."""
    one = client()
    first = one.block(REQUEST if by_client else RESPONSE)
    return [
        settings(initial_window_size=100, table_size=100, unknown=7),
        frame(HEADERS, 0, 1, first[:7]),
        frame(CONTINUATION, END_HEADERS, 1, first[7:]),
        frame(DATA, 0, 1, messages(b"a" * 20, b"b" * 50)[:40]),
        frame(DATA, PADDED, 1, b"\x02" + messages(b"a" * 20, b"b" * 50)[40:] + bytes(2)),
        grow(1, 1000),
        grow(0, 1000),
        frame(PING, 0, 0, b"12345678"),
        frame(PRIORITY, 0, 1, bytes(5)),
        settings(initial_window_size=10),
        one.headers(3, REQUEST if by_client else RESPONSE),
        frame(DATA, 0, 3, messages(b"")),
        frame(RST_STREAM, 0, 3, long(8)),
        one.headers(1, TRAILERS, END_HEADERS | END_STREAM),
        frame(GOAWAY, 0, 0, long(1) + long(0) + b"bye"),
    ]


_FRAMES = {by_client: _said(by_client=by_client) for by_client in (True, False)}
_ORDERS = st.lists(st.integers(0, len(_FRAMES[True]) - 1), max_size=25) | st.just(list(range(len(_FRAMES[True]))))
_FLIPS = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4)
_STEPS = st.integers(1, 500)


def _answer(one: Transcript, event: object) -> None:
    """A user that answers everything, a client's with its end."""
    if isinstance(event, Headers):
        one.connection.respond(event.stream, RESPONSE)
    elif isinstance(event, Message):
        one.connection.send(event.stream, event.data * 3)
    elif isinstance(event, Ended):
        one.connection.end(event.stream, TRAILERS)


def _run(one: Transcript, data: bytes, step: int) -> None:
    said = one.raw().removeprefix(PREFACE)
    for start in range(0, len(data), step):
        try:
            events = one.peer(data[start : start + step])
        except ConnectionFault:
            read(said + one.raw())
            return
        for event in events:
            _answer(one, event)
        said += one.raw()
        assert len(said) < 100_000
    read(said)
    waiting = sum(len(part) for stream in one.connection._streams.values() for part in stream.unsent)
    assert one.connection.unsent == waiting


def _end(*, is_server: bool) -> Transcript:
    if is_server:
        return server()
    one = client()
    for _ in range(2):
        one.connection.send(one.connection.request(REQUEST), b"hello")
    return one


@pytest.mark.parametrize("is_server", [True, False])
def test_the_conversation_is_a_good_one(is_server: bool) -> None:
    """As it is, it breaks no rule."""
    one = _end(is_server=is_server)
    events = one.peer(PREFACE if is_server else b"", *_FRAMES[is_server])
    assert [event.data for event in events if isinstance(event, Message)] == [b"a" * 20, b"b" * 50, b""]


@pytest.mark.fuzz
@given(st.booleans(), _ORDERS, _FLIPS, _STEPS)
def test_mutated_conversations(is_server: bool, order: list[int], flips: list[tuple[int, int]], step: int) -> None:
    """Frames dropped, doubled, moved, octets changed: never another exception than ConnectionFault."""
    data = bytearray(b"".join(_FRAMES[is_server][index] for index in order))
    for position, value in flips if data else ():
        data[position % len(data)] = value
    start = PREFACE + _FRAMES[True][0] if is_server else _FRAMES[False][0]
    _run(_end(is_server=is_server), start + bytes(data), step)


@pytest.mark.fuzz
@given(st.booleans(), st.binary(max_size=300), _STEPS)
def test_random_bytes(is_server: bool, data: bytes, step: int) -> None:
    """Noise, from the first octet or behind the preface and SETTINGS."""
    _run(_end(is_server=is_server), data, step)
    _run(_end(is_server=is_server), (PREFACE if is_server else b"") + settings() + data, step)


@pytest.mark.fuzz
@given(
    st.booleans(),
    st.lists(
        st.tuples(st.integers(0, 10), st.integers(0, 255), st.integers(0, 4), st.binary(max_size=40)), max_size=12
    ),
    _STEPS,
)
def test_random_payloads_in_good_frames(is_server: bool, frames: list[tuple[int, int, int, bytes]], step: int) -> None:
    """Every type, with flags, streams and payloads that it may not have."""
    data = settings() + b"".join(frame(*each) for each in frames)
    _run(_end(is_server=is_server), (PREFACE if is_server else b"") + data, step)


@pytest.mark.fuzz
@given(st.binary(max_size=60), st.sampled_from([server, client]))
def test_random_header_blocks(block: bytes, one: Callable[[], Transcript]) -> None:
    """Noise for HPACK."""
    it = one().opened()
    _run(it, frame(HEADERS, END_HEADERS, 1, block) + frame(HEADERS, END_HEADERS, 3, block), 1 << 20)
