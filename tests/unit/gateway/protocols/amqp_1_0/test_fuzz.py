"""The engine survives any bytes: it gives requests, or it closes cleanly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import NotFound
from services.common.message.amqp_1_0.composite import Composite
from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import ACCEPTED, PublishDisposition
from services.gateway.protocols.amqp_1_0 import frames, security
from services.gateway.protocols.amqp_1_0.connection import AMQP_HEADER, SASL_HEADER
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.amqp_1_0.performatives import (
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from services.gateway.protocols.amqp_1_0.states import Accepted, Modified, Rejected, Released
from tests.support.amqp_1_0_playbook import PLAIN, Playbook, data, framed, receiving, sending, transfer

pytestmark = pytest.mark.fuzz

_HANDSHAKE = (
    SASL_HEADER
    + framed(0, security.Init("PLAIN", PLAIN), kind=frames.SASL)
    + AMQP_HEADER
    + framed(0, Open("c", max_frame_size=512))
)
_NUMBERS = st.sampled_from([0, 1, 2, 3, 1 << 31, (1 << 32) - 1])
_HANDLES = st.integers(0, 2)
_STATES: st.SearchStrategy[Composite | None] = st.sampled_from(
    [None, Accepted(), Rejected(), Released(), Modified(undeliverable_here=True)]
)
_SAID: st.SearchStrategy[tuple[Composite, bytes]] = st.one_of(
    st.builds(lambda window: (Begin(None, 0, window, window), b""), _NUMBERS),
    st.builds(lambda at, to: (sending(to, at), b""), _HANDLES, st.sampled_from(["q", "x/k", "nowhere", ""])),
    st.builds(lambda at, of: (receiving(of, at), b""), _HANDLES, st.sampled_from(["q", "x", "nowhere"])),
    st.builds(
        lambda seen, at, count, credit, drain, echo: (
            Flow(seen, 2, 0, 2, at, count, credit, drain=drain, echo=echo),
            b"",
        ),
        _NUMBERS,
        _HANDLES,
        _NUMBERS,
        _NUMBERS,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        lambda number, at, more, payload: (transfer(number, at, more=more), payload),
        _NUMBERS,
        _HANDLES,
        st.booleans(),
        st.sampled_from([data(), data(b"x" * 30_000), b"garbage", b""]),
    ),
    st.builds(lambda at, aborted: (Transfer(at, aborted=aborted), b"tail"), _HANDLES, st.booleans()),
    st.builds(
        lambda role, first, last, settled, state: (Disposition(role, first, last, settled, state), b""),
        st.booleans(),
        _NUMBERS,
        _NUMBERS,
        st.booleans(),
        _STATES,
    ),
    st.builds(lambda at, closed: (Detach(at, closed), b""), _HANDLES, st.booleans()),
    st.just((End(), b"")),
    st.just((Close(), b"")),
)
_FRAMES = st.builds(lambda channel, said: framed(channel, *said), st.integers(0, 1), _SAID)
_OPENINGS = [framed(0, Begin(None, 0, 9, 9)), framed(0, sending("q", 0)), framed(0, receiving("q", 1))]


class _Broker(Playbook):
    """Delivers what it has credit for, confirms what it gets; refuses what it is told to."""

    def __init__(self, *, refuses: bool) -> None:
        super().__init__(Amqp10Limits(frame_max=65536, max_message_size=20_000))
        self.refused = {to_broker.Consume: NotFound("no")} if refuses else {}
        self._delivered = 0

    def serve(self, request: to_broker.Request) -> None:
        """As Playbook, and more."""
        super().serve(request)
        match request:
            case to_broker.Publish(session=session):
                last = request.first + len(request.bodies) - 1
                self.engine.confirm(session, [PublishDisposition(request.link, request.first, last, ACCEPTED)])
            case to_broker.Credit(session=session, up_to=up_to) if up_to and self._delivered < 100:
                self._delivered += 1
                self.deliver(request.tag, self._delivered, b"x" * 600, session=session)


def _run(stream: bytes, step: int, *, refuses: bool) -> None:
    book = _Broker(refuses=refuses)
    for start in range(0, len(stream), step):
        book.receives(stream[start : start + step])
        book.raw()
        assert book.engine.incomplete >= 0
        if book.closed:
            break
    if book.closed:
        assert book.receives(stream) == []
        assert book.raw() == b""


@given(st.lists(_FRAMES, max_size=20), st.integers(1, 400), st.booleans())
def test_frames_in_any_order(said: list[bytes], step: int, refuses: bool) -> None:
    """Frames that are right each by itself, in an order that makes sense or none."""
    _run(_HANDSHAKE + b"".join([*_OPENINGS, *said]), step, refuses=refuses)


@given(
    st.lists(_FRAMES, max_size=10),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=5),
    st.integers(1, 400),
)
def test_bytes_that_are_wrong(said: list[bytes], changes: list[tuple[int, int]], step: int) -> None:
    """Streams of which some bytes are others."""
    stream = bytearray(_HANDSHAKE + b"".join([*_OPENINGS, *said]))
    for at, value in changes:
        stream[at % len(stream)] = value
    _run(bytes(stream), step, refuses=False)


@given(st.binary(max_size=200))
def test_garbage_behind_the_handshake(garbage: bytes) -> None:
    """Bytes that no client would send."""
    _run(_HANDSHAKE + garbage, 50, refuses=False)
