"""The engine survives any bytes: it gives requests, or it closes cleanly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, heartbeat

from services.common.errors import NotFound
from services.gateway import answers
from services.gateway import vocabulary as v
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from tests.support.amqp_playbook import CAPABILITIES, HEADER, Playbook, content, written

_HANDSHAKE = (
    HEADER
    + written(0, commands.Connection.StartOk({"capabilities": CAPABILITIES}, "PLAIN", "\0guest\0guest", "en_US"))
    + written(0, commands.Connection.TuneOk(0, 8192, 0), commands.Connection.Open("/"))
)
_OLDER = [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x00\x09"]
_WORK = [
    written(1, commands.Channel.Open()),
    written(1, commands.Queue.Declare(queue="q", arguments={"x-max-length": 5, "x": {"y": [1, "z"]}})),
    written(1, commands.Basic.Consume(queue="q")),
    written(1, commands.Confirm.Select()),
    content(1, b"x" * 100, headers={"a": "b"}, expiration="100", delivery_mode=2),
    content(1, b"y" * 10_000),
    content(1, b""),
    written(1, commands.Basic.Ack(1), commands.Basic.Ack(2), commands.Basic.Nack(5, True, True)),
    written(1, commands.Basic.Get(queue="q"), commands.Tx.Select(), commands.Tx.Commit()),
    written(2, commands.Channel.Open(), commands.Exchange.Declare(exchange="e")),
    written(0, heartbeat.Heartbeat()),
    written(1, commands.Channel.Close(200, "", 0, 0)),
    written(0, commands.Connection.Close(200, "", 0, 0)),
]
_CHUNKS = st.sampled_from(_WORK) | st.binary(max_size=40)
_STREAMS = st.lists(_CHUNKS, max_size=15).map(lambda chunks: _HANDSHAKE + b"".join(chunks))
_MUTATIONS = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4)
_RESULTS = {v.DeclareQueue: answers.QueueDeclared("q", 0, 0), v.Consume: "tag", v.PurgeQueue: 0, v.DeleteQueue: 0}


def _serve(book: Playbook, requests: list[v.Request], *, refuse: bool) -> bool:
    """A broker that says yes to everything, or no to every queue; gives whether the connection was to be closed."""
    for request in requests:
        if isinstance(request, v.Close):
            return True
        if isinstance(request, v.Authenticate):
            book.engine.authenticated()
        elif refuse and isinstance(request, v.DeclareQueue | v.Publish):
            book.engine.fail(request, NotFound("no"))
        elif not isinstance(request, v.Publish | v.Settle):
            book.engine.succeed(request, _RESULTS.get(type(request)))
    following = book.engine.pending_requests()
    return bool(following) and _serve(book, following, refuse=refuse)


def _run(stream: bytes, step: int, *, refuse: bool = False, read: bool = True) -> None:
    book = Playbook(Amqp09Limits(frame_max=8192, max_message_size=20_000))
    for start in range(0, len(stream), step):
        closed = _serve(book, book.engine.receive(stream[start : start + step]), refuse=refuse)
        (book.sent if read else book.raw)()
        if closed:
            book.engine.pending_requests()  # of what was refused before the end, in the same read
            assert book.engine.receive(b"anything") == []
            return


@pytest.mark.fuzz
@given(_STREAMS, _MUTATIONS, st.integers(1, 5000), st.booleans())
def test_mutated_streams(stream: bytes, mutations: list[tuple[int, int]], step: int, refuse: bool) -> None:
    """A conversation with some bytes changed: never an exception, and all that is sent can be read."""
    data = bytearray(stream)
    for position, value in mutations:
        data[position % len(data)] = value
    _run(bytes(data), step, refuse=refuse)


@pytest.mark.fuzz
@given(st.sampled_from(_OLDER), _STREAMS, _MUTATIONS, st.integers(1, 5000))
def test_mutated_streams_of_older_versions(
    header: bytes, stream: bytes, mutations: list[tuple[int, int]], step: int
) -> None:
    """Likewise; what is sent is not read, as the codec knows 0-9-1 alone."""
    data = bytearray(header + stream[len(header) :])
    for position, value in mutations:
        data[position % len(data)] = value
    _run(bytes(data), step, read=False)


@pytest.mark.fuzz
@given(st.binary(max_size=300), st.integers(1, 300))
def test_random_bytes(data: bytes, step: int) -> None:
    """Noise, from the first byte or behind the handshake."""
    _run(data, step)
    _run(_HANDSHAKE + data, step)


@pytest.mark.fuzz
@given(st.binary(min_size=4, max_size=60), st.integers(0, 3), st.sampled_from([1, 2, 3, 8]))
def test_random_payloads_in_good_frames(payload: bytes, channel: int, kind: int) -> None:
    """Noise that is framed well, on an open channel."""
    frame = bytes((kind, 0, channel)) + len(payload).to_bytes(4, "big") + payload + b"\xce"
    _run(_HANDSHAKE + _WORK[0] + frame + _WORK[4], 1 << 20)


@pytest.mark.fuzz
@given(st.sampled_from(sorted(commands.INDEX_MAPPING)), st.binary(max_size=40), st.integers(0, 2))
def test_random_arguments_of_every_method(code: int, arguments: bytes, channel: int) -> None:
    """Every method, with arguments that are none."""
    payload = code.to_bytes(4, "big") + arguments
    frame = bytes((1, 0, channel)) + len(payload).to_bytes(4, "big") + payload + b"\xce"
    _run(_HANDSHAKE + _WORK[0] + frame + _WORK[4], 1 << 20)
