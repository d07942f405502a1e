"""AMQP 1.0, part 2, section 2.4 (connections) and part 5, section 5.3 (SASL): how a connection begins and ends."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import AccessRefused, NotFound, Unavailable
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0 import frames, security
from services.gateway.protocols.amqp_1_0.connection import AMQP_HEADER, SASL_HEADER
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.amqp_1_0.performatives import Begin, Close, End, Open
from tests.support.amqp_1_0_playbook import PLAIN, Playbook, data, framed, transfer


def sasl(what: Any) -> bytes:
    return framed(0, what, kind=frames.SASL)


@pytest.mark.parametrize(
    "header", [b"AMQP\x00\x00\x09\x01", b"AMQP\x02\x01\x00\x00", b"GET / HTTP/1.1", b"\x16\x03\x01"]
)
def test_other_headers(header: bytes) -> None:
    """Section 2.2: a header that is not spoken is answered with one that is, and a close."""
    book = Playbook()
    book.receives(header)
    assert book.raw() == SASL_HEADER
    assert book.closed


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_in_pieces(step: int) -> None:
    """However the bytes are split, and though nothing is waited for, a connection opens."""
    book = Playbook()
    stream = SASL_HEADER + sasl(security.Init("PLAIN", PLAIN)) + AMQP_HEADER + framed(0, Open("c")) + framed(0, Close())
    for start in range(0, len(stream), step):
        book.receives(stream[start : start + step])
    kinds = [each if isinstance(each, bytes) else type(each) for each in book.answers()]
    assert kinds == [SASL_HEADER, security.Mechanisms, security.Outcome, AMQP_HEADER, Open, Close]
    assert book.closed


def test_challenges() -> None:
    """Section 5.3.2: challenges and responses until the outcome, with what the mechanism says last."""
    book = Playbook(mechanisms=("SCRAM-SHA-256",))
    book.waits = {to_broker.Authenticate}
    [request] = book.receives(SASL_HEADER + sasl(security.Init("SCRAM-SHA-256", b"first")))
    assert isinstance(request, to_broker.Authenticate)
    assert (request.mechanism, request.response) == ("SCRAM-SHA-256", b"first")
    book.engine.challenge(b"say more")
    assert book.answers()[-1] == security.Challenge(b"say more")
    [request] = book.receives(sasl(security.Response(b"more")))
    assert isinstance(request, to_broker.Authenticate)
    assert request.response == b"more"
    book.engine.authenticated(b"proof")
    assert book.answers() == [security.Outcome(security.OK, b"proof")]


@pytest.mark.parametrize(
    ("error", "code"), [(AccessRefused("wrong password"), security.AUTH), (Unavailable("no store"), security.SYS)]
)
def test_refused(error: Exception, code: int) -> None:
    """Section 5.3.3.6: a refused client is told whether it was its fault, and the connection ends."""
    book = Playbook()
    book.refused = {to_broker.Authenticate: error}
    book.receives(SASL_HEADER + sasl(security.Init("PLAIN", PLAIN)))
    assert book.answers()[-1] == security.Outcome(code)
    assert book.closed


def test_a_mechanism_that_is_not_offered() -> None:
    """It is refused, though it may be installed."""
    book = Playbook()
    book.receives(SASL_HEADER + sasl(security.Init("ANONYMOUS")))
    assert book.answers()[-1] == security.Outcome(security.AUTH)
    assert book.closed


@pytest.mark.parametrize("mechanisms", [("PLAIN", "ANONYMOUS"), ("EXTERNAL", "PLAIN", "ANONYMOUS")])
def test_without_sasl(mechanisms: tuple[str, ...]) -> None:
    """Section 2.2: a client without SASL is the user that its certificate names, or anonymous, if offered."""
    book = Playbook(mechanisms=mechanisms)
    [request, *_] = book.receives(AMQP_HEADER + framed(0, Open("c")))
    assert isinstance(request, to_broker.Authenticate)
    assert request.mechanism == next(name for name in ("EXTERNAL", "ANONYMOUS") if name in mechanisms)
    assert [type(each) for each in book.answers()] == [bytes, Open]


def test_without_sasl_where_it_has_to_be() -> None:
    """Section 2.2: then the answer is the header of SASL."""
    book = Playbook()
    book.receives(AMQP_HEADER)
    assert book.raw() == SASL_HEADER
    assert book.closed


@pytest.mark.parametrize(
    ("hostname", "virtual_host"), [(None, "/"), ("localhost", "/"), ("vhost:orders", "orders"), ("vhost:", "")]
)
def test_virtual_host(hostname: str | None, virtual_host: str) -> None:
    """Section 2.7.1, hostname: a virtual host where it says so, else the usual one."""
    book = Playbook().opened(hostname=hostname)
    [request] = [each for each in book.asked if isinstance(each, to_broker.Open)]
    assert (request.virtual_host, request.client) == (virtual_host, "client")


def test_a_virtual_host_that_is_not_there() -> None:
    """Section 2.4.1: an open goes before the close that says why."""
    book = Playbook().authenticated()
    book.refused = {to_broker.Open: NotFound("vhost x not found")}
    book.receives(AMQP_HEADER + framed(0, Open("c", "vhost:x")))
    _, opened, closed = book.answers()
    assert isinstance(opened, Open)
    assert (closed.error.condition, closed.error.description) == ("amqp:not-found", "vhost x not found")
    book.receives(framed(0, Close()))
    assert book.closed


@pytest.mark.parametrize(
    ("ours", "theirs", "idleness"),
    [(60, None, (0, 120)), (60, 10_000, (5, 120)), (10, 60_000, (30, 20)), (0, 2500, (1.25, 0)), (0, None, (0, 0))],
)
def test_idle_time_out(ours: int, theirs: int | None, idleness: tuple[float, float]) -> None:
    """Section 2.4.5: each end says what it bears; we write twice as often, and bear twice as much."""
    book = Playbook(Amqp10Limits(heartbeat=ours)).authenticated()
    book.receives(AMQP_HEADER + framed(0, Open("c", idle_time_out=theirs)))
    _, opened = book.answers()
    assert (book.engine.idleness, opened.idle_time_out) == (idleness, ours * 1000 or None)
    book.engine.beat()
    assert book.raw() == bytes.fromhex("0000000802000000")
    assert book.receives(frames.BEAT) == []


@pytest.mark.parametrize(
    ("fields", "condition"),
    [({"max_frame_size": 511}, "amqp:connection:framing-error"), ({"idle_time_out": 999}, "amqp:not-allowed")],
)
def test_what_is_not_agreed_to(fields: dict[str, int], condition: str) -> None:
    """Sections 2.7.1 and 2.4.5: frames have to hold 512 bytes, and a peer has to be patient for a second."""
    book = Playbook().authenticated()
    book.receives(AMQP_HEADER + framed(0, Open("c", **fields)))
    *_, opened, closed = book.answers()
    assert isinstance(opened, Open)
    assert closed.error.condition == condition


@pytest.mark.parametrize(
    ("raw", "condition"),
    [
        (bytes.fromhex("00000007020000000000"), "amqp:connection:framing-error"),  # smaller than a head
        (bytes.fromhex("0000000801000000"), "amqp:connection:framing-error"),  # data before the head's end
        (bytes.fromhex("7fffffff02000000"), "amqp:connection:framing-error"),  # larger than was agreed
        (bytes.fromhex("0000000902010000ff"), "amqp:connection:framing-error"),  # a frame of SASL
        (bytes.fromhex("0000000902000000ff"), "amqp:decode-error"),
        (bytes.fromhex("000000090200000040"), "amqp:decode-error"),  # no performative
        (bytes.fromhex("0000000c02000000005399c0"), "amqp:decode-error"),
        (bytes.fromhex("0000000c0200000000539945"), "amqp:not-implemented"),
        (framed(0, Begin(None, 0, 1, 1), b"behind"), "amqp:decode-error"),
        (framed(0, Open("again")), "amqp:illegal-state"),
        (framed(5, End()), "amqp:illegal-state"),
        (framed(0, Begin(3, 0, 1, 1)), "amqp:illegal-state"),
        (framed(5000, Begin(None, 0, 1, 1)), "amqp:connection:framing-error"),
    ],
)
def test_faults_of_a_connection(raw: bytes, condition: str) -> None:
    """Section 2.4.3: what is wrong is answered with a close that says what."""
    book = Playbook().opened()
    book.receives(raw)
    [closed] = book.answers()
    assert closed.error.condition == condition
    book.receives(framed(0, Close()))
    assert book.closed


def test_the_client_closes() -> None:
    """Section 2.4.3: what was asked for before is done, then the close is answered."""
    book = Playbook().begun()
    assert book.close() == [Close()]
    assert book.closed
    book.engine.beat()
    assert book.raw() == b""


def test_the_broker_closes() -> None:
    """Section 2.4.3: it says why, and hears nothing but the peer's close."""
    book = Playbook().begun()
    book.shut_down()
    [closed] = book.answers()
    assert closed.error.condition == "amqp:connection:forced"
    assert book.engine.closing
    assert book.does(0, End()) == []
    assert not book.closed
    assert book.close() == []
    assert book.closed


def test_who_does_not_wait() -> None:
    """Before a connection is open, what may be sent ahead is bounded."""
    book = Playbook()
    book.waits = {to_broker.Authenticate}
    book.receives(SASL_HEADER + sasl(security.Init("PLAIN", PLAIN)))
    book.receives(bytes(20_000))
    assert book.closed


def test_what_is_on_its_way_when_the_broker_closes() -> None:
    """Section 2.4.3: it is passed over, however large; the client's close is heard behind it."""
    book = Playbook().sender()
    book.shut_down()
    book.answers()
    book.says(0, transfer(0), data(b"x" * 20_000))
    assert not book.closed
    book.says(0, Close())
    assert book.closed
    assert book.answers() == []
