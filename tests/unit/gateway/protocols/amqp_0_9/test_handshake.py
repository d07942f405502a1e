"""From the protocol header to open-ok, and the end of a connection."""

from __future__ import annotations

from importlib import metadata

import pytest
from pamqp import commands

from services.common.errors import AccessRefused, ConnectionForced, NotFound, Unavailable
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.vocabulary import Authenticate, Close, EndSessions, Open, OpenSession, UpdateSecret
from tests.support.amqp_playbook import CAPABILITIES, HEADER, Playbook, content, written

_START_OK = commands.Connection.StartOk({"capabilities": CAPABILITIES}, "PLAIN", "\0guest\0guest", "en_US")


def test_the_whole_handshake() -> None:
    """start, start-ok, tune, tune-ok, open, open-ok, with what each carries."""
    book = Playbook(Amqp09Limits(heartbeat=30), ("PLAIN", "AMQPLAIN"))
    assert book.engine.receive(HEADER) == []
    [(_, start)] = book.sent()
    assert (start.version_major, start.version_minor, start.mechanisms, start.locales) == (
        0,
        9,
        "PLAIN AMQPLAIN",
        "en_US",
    )
    assert start.server_properties["product"] == "Hopline"
    assert set(start.server_properties["capabilities"].values()) == {True}
    assert len(start.server_properties["capabilities"]) == 9

    request = book.asks(0, _START_OK)
    assert isinstance(request, Authenticate)
    assert (request.mechanism, request.response) == ("PLAIN", b"\0guest\0guest")
    assert request.client_properties["capabilities"] == CAPABILITIES

    book.engine.authenticated()
    [(_, tune)] = book.sent()
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 30)
    assert book.client(0, commands.Connection.TuneOk(100, 65536, 10)) == []
    assert book.engine.idleness == (5, 20)

    opening = book.asks(0, commands.Connection.Open("/"))
    assert opening == Open(0, "/")
    book.engine.succeed(opening)
    assert isinstance(book.sent()[0][1], commands.Connection.OpenOk)


def test_the_product_can_be_another_one() -> None:
    """Clients that test for a product and its version read what is set; the capabilities stay what they are."""
    properties = []
    for limits in (Amqp09Limits(), Amqp09Limits(product="RabbitMQ", product_version="3.10.8")):
        book = Playbook(limits)
        book.engine.receive(HEADER)
        properties.append(book.sent()[0][1].server_properties)
    ours, told = properties
    assert (ours["product"], ours["version"]) == ("Hopline", metadata.version("hopline"))
    assert (told["product"], told["version"]) == ("RabbitMQ", "3.10.8")
    assert told["capabilities"] == ours["capabilities"]


def test_the_header_may_come_in_pieces() -> None:
    """Nothing is said before it is complete."""
    book = Playbook()
    for position in range(8):
        assert book.raw() == b""
        book.engine.receive(HEADER[position : position + 1])
    assert isinstance(book.sent()[0][1], commands.Connection.Start)


@pytest.mark.parametrize(
    ("opening", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "TLS"),
        (b"AMQP\x00\x01\x00\x00", "another version"),
        (b"AMQP\x03\x01\x00\x00", "another version"),
        (b"\x10\x0c\x00\x04MQTT", "MQTT"),
        (b"\x00", "began with"),
    ],
)
def test_other_protocols_get_the_header_and_a_closed_connection(opening: bytes, reason: str) -> None:
    """The eight bytes that we do speak, and one line for the log (section 4.2.2)."""
    book = Playbook()
    [close] = book.engine.receive(opening)
    assert isinstance(close, Close)
    assert reason in close.reason
    assert "\n" not in close.reason
    assert book.raw() == HEADER
    assert book.engine.receive(opening) == []


def test_a_challenge_goes_back_and_forth() -> None:
    """secure, secure-ok, and the mechanism stays the one of start-ok."""
    book = Playbook().greeted()
    book.asks(0, _START_OK)
    book.engine.challenge(b"who?")
    [(_, secure)] = book.sent()
    assert secure.challenge == "who?"
    request = book.asks(0, commands.Connection.SecureOk("me"))
    assert (request.mechanism, request.response) == ("PLAIN", b"me")
    book.engine.authenticated()
    assert isinstance(book.sent()[0][1], commands.Connection.Tune)


def test_a_mechanisms_last_word_is_a_challenge() -> None:
    """What it tells the client with the good news comes in secure, for tune has no place; then secure-ok, tune."""
    book = Playbook().greeted()
    book.asks(0, _START_OK)
    book.engine.authenticated(b"v=it is me")
    [(_, secure)] = book.sent()
    assert secure.challenge == "v=it is me"
    assert book.client(0, commands.Connection.SecureOk("")) == []
    assert isinstance(book.sent()[0][1], commands.Connection.Tune)


@pytest.mark.parametrize(
    ("answer", "code"), [(commands.Connection.SecureOk("more"), 502), (commands.Connection.TuneOk(0, 0, 0), 503)]
)
def test_what_is_no_answer_to_the_last_word(answer: commands.Connection.SecureOk, code: int) -> None:
    """It asks for nothing: 502 for a client that sends more, 503 for one that does not wait for tune."""
    book = Playbook().greeted()
    book.asks(0, _START_OK)
    book.engine.authenticated(b"v=it is me")
    book.sent()
    assert book.client(0, answer) == []
    assert book.closed_connection()[0] == code


def test_a_client_need_not_wait() -> None:
    """What comes before the broker has answered is held back, and read then."""
    book = Playbook().greeted()
    data = written(0, _START_OK, commands.Connection.TuneOk(0, 0, 0), commands.Connection.Open("/"))
    [authenticate] = book.engine.receive(data + written(1, commands.Channel.Open()) + content(1, b"x"))
    assert isinstance(authenticate, Authenticate)
    book.engine.authenticated()
    [opening] = book.engine.pending_requests()
    book.engine.succeed(opening)
    assert [type(request).__name__ for request in book.engine.pending_requests()] == ["OpenSession", "Publish"]


def test_what_is_held_back_is_bounded() -> None:
    """A peer that floods before it is authenticated is closed, 506."""
    book = Playbook().greeted()
    book.asks(0, _START_OK)
    requests = [request for _ in range(40) for request in book.engine.receive(b"\x08\0\0\0\0\0\0\xce" * 8192)]
    assert book.closed_connection()[0] == 506
    assert requests == []
    while book.engine.unread:
        assert book.engine.receive(b"") == []
    assert [type(request) for request in book.client(0, commands.Connection.CloseOk())] == [Close]


def test_what_one_read_holds_back_is_bounded() -> None:
    """Also what comes behind start-ok at once is no more than a few frames."""
    book = Playbook().greeted()
    assert len(book.engine.receive(written(0, _START_OK) + b"\x08\0\0\0\0\0\0\xce" * 2500)) == 1
    assert book.closed_connection()[0] == 506
    assert book.engine.incomplete == 0


def test_refused_credentials_with_the_capability() -> None:
    """authentication_failure_close: 403, and the client's close-ok is waited for."""
    book = Playbook().greeted()
    book.engine.fail(book.asks(0, _START_OK), AccessRefused("Login was refused"))
    assert book.engine.pending_requests() == []
    assert book.closed_connection() == (403, 0, 0)
    assert book.engine.closing
    [close] = book.client(0, commands.Connection.CloseOk())
    assert isinstance(close, Close)
    assert "Login was refused" in close.reason


def test_refused_credentials_without_the_capability() -> None:
    """The socket is closed without a method, as the specification has it."""
    book = Playbook().greeted()
    request = book.asks(0, commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"))
    book.engine.fail(request, AccessRefused("Login was refused"))
    [close] = book.engine.pending_requests()
    assert isinstance(close, Close)
    assert book.raw() == b""


def test_authentication_that_is_unavailable() -> None:
    """Not the client's fault, and not said to be."""
    book = Playbook().greeted()
    book.engine.fail(book.asks(0, _START_OK), Unavailable("no users"))
    assert book.closed_connection() == (541, 10, 11)


@pytest.mark.parametrize("error", [NotFound("no vhost 'x'"), AccessRefused("not for you")])
def test_refused_virtual_hosts(error: NotFound | AccessRefused) -> None:
    """530 on the connection, as RabbitMQ, whether it is unknown or forbidden."""
    book = Playbook().authenticated()
    book.client(0, commands.Connection.TuneOk(0, 0, 0))
    book.engine.fail(book.asks(0, commands.Connection.Open("/")), error)
    assert book.closed_connection() == (530, 10, 40)


@pytest.mark.parametrize(
    "tune_ok",
    [
        commands.Connection.TuneOk(0, 4095, 0),
        commands.Connection.TuneOk(0, 131073, 0),
        commands.Connection.TuneOk(2048, 0, 0),
    ],
)
def test_negotiation_ends_where_the_offer_does(tune_ok: commands.Connection.TuneOk) -> None:
    """Less than the minimum frame, more than was offered: 530, as RabbitMQ."""
    book = Playbook().authenticated()
    assert book.client(0, tune_ok) == []
    assert book.closed_connection() == (530, 10, 31)


def test_zero_asks_for_our_limits() -> None:
    """0 is no limit of the client's own."""
    book = Playbook(Amqp09Limits(frame_max=8192, channel_max=5)).opened()
    assert isinstance(book.asks(5, commands.Channel.Open()), OpenSession)
    book.client(6, commands.Channel.Open())
    assert book.closed_connection() == (530, 20, 10)


def test_the_peer_closes() -> None:
    """close, close-ok, and no reason to log."""
    book = Playbook().running()
    close = book.asks(0, commands.Connection.Close(200, "bye", 0, 0))
    assert close == Close(0)
    assert book.client(1, commands.Channel.Open()) == []
    assert book.raw() == b""
    book.engine.succeed(close)
    [(_, close_ok)] = book.sent()
    assert isinstance(close_ok, commands.Connection.CloseOk)
    assert book.client(1, commands.Channel.Open()) == []


def test_late_answers_after_close_ok() -> None:
    """Nothing is sent, nothing is asked."""
    book = Playbook().running()
    asked, close = book.client(1, commands.Queue.Declare(queue="q")) + book.client(
        0, commands.Connection.Close(200, "", 0, 0)
    )
    book.engine.succeed(close)
    book.raw()
    book.engine.fail(asked, NotFound("late"))
    assert book.engine.pending_requests() == []
    assert book.raw() == b""


def test_the_broker_closes() -> None:
    """320, when the sessions have ended; the rest is ignored until close-ok."""
    book = Playbook().running(1, 2)
    book.engine.close(ConnectionForced("shutdown"))
    assert book.engine.pending_requests() == [EndSessions(0)]
    assert book.closed_connection() == (320, 0, 0)
    assert (
        book.engine.receive(
            content(1, b"x") + written(1, commands.Basic.Qos()) + written(0, commands.Connection.Open("/"))
        )
        == []
    )
    book.engine.beat()
    assert book.raw() == b""
    [close] = book.client(0, commands.Connection.CloseOk())
    assert close == Close(0, "CONNECTION_FORCED - shutdown")
    assert not book.engine.closing


def test_the_broker_closes_before_anything_was_said() -> None:
    """There is no peer to tell."""
    book = Playbook()
    book.engine.close(ConnectionForced("shutdown"))
    assert book.engine.pending_requests() == [Close(0, "CONNECTION_FORCED - shutdown")]
    assert book.raw() == b""


def test_both_close() -> None:
    """The peer's close crosses ours: it is answered, and that is the end."""
    book = Playbook().running()
    book.engine.close(ConnectionForced("shutdown"))
    assert book.engine.pending_requests() == [EndSessions(0)]
    assert book.closed_connection() == (320, 0, 0)
    close = book.asks(0, commands.Connection.Close(200, "", 0, 0))
    assert isinstance(close, Close)
    book.engine.succeed(close)
    assert isinstance(book.sent()[0][1], commands.Connection.CloseOk)


def test_beats() -> None:
    """A heartbeat frame, and theirs are understood."""
    book = Playbook().running()
    book.engine.beat()
    assert book.raw() == b"\x08\0\0\0\0\0\0\xce"
    assert book.engine.receive(b"\x08\0\0\0\0\0\0\xce") == []


def test_update_secret() -> None:
    """update-secret-ok when the broker has it, also behind a close, and nothing else changes."""
    book = Playbook().running()
    update = commands.Connection.UpdateSecret("new", "expired")
    asked = book.asks(0, update)
    assert asked == UpdateSecret(0, b"new", "expired")
    book.engine.succeed(asked)
    [(channel, answer)] = book.sent()
    assert (channel, type(answer)) == (0, commands.Connection.UpdateSecretOk)
    asked, close = book.client(0, update, commands.Connection.Close(200, "", 0, 0))
    book.engine.succeed(asked)
    book.engine.succeed(close)
    assert [value.name for _, value in book.sent()] == ["Connection.UpdateSecretOk", "Connection.CloseOk"]


def test_a_secret_before_the_connection_is_open() -> None:
    """503: there is nothing to update."""
    book = Playbook().authenticated()
    assert book.client(0, commands.Connection.UpdateSecret("new", "early")) == []
    assert book.closed_connection() == (503, 10, 70)


def test_our_version_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many connect: it is in a file, which would be most of what a peer costs that says a protocol header."""
    Playbook().engine.receive(HEADER)
    monkeypatch.setattr(metadata, "distribution", lambda _name: pytest.fail("the file is read again"))
    book = Playbook()
    book.engine.receive(HEADER)
    assert book.sent()
