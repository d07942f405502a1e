"""How a connection begins (RFC 9113 sections 3.4 and 6.5)."""

from __future__ import annotations

from services.common.http2.events import Ready
from tests.support.http2_transcript import (
    ACK,
    HEADERS,
    PREFACE,
    REQUEST,
    SETTINGS,
    WINDOW_UPDATE,
    Wire,
    client,
    frame,
    long,
    read,
    server,
    settings,
)

_ACKED = Wire(SETTINGS, ACK, 0, b"")


def test_client_begins_with_the_preface_and_settings() -> None:
    """24 octets and SETTINGS, before anything has come (section 3.4)."""
    data = client().raw()
    assert data.startswith(PREFACE)
    first, *_ = read(data.removeprefix(PREFACE))
    assert (first.kind, first.flags, first.stream) == (SETTINGS, 0, 0)


def test_server_begins_with_settings() -> None:
    """SETTINGS are the server's preface (section 3.4)."""
    first, *_ = server().sent()
    assert (first.kind, first.flags, first.stream) == (SETTINGS, 0, 0)


def test_windows_are_made_large_at_once() -> None:
    """INITIAL_WINDOW_SIZE for streams, WINDOW_UPDATE for the connection, which no setting reaches (section 6.9.2)."""
    for one in (client(), server()):
        said, update = read(one.raw().removeprefix(PREFACE))
        assert (4).to_bytes(2, "big") + long(8 << 20) in said.payload
        assert update == Wire(WINDOW_UPDATE, 0, 0, long((32 << 20) - 65_535))


def test_settings_are_acknowledged_each_time() -> None:
    """The first make the connection ready; later ones are only acknowledged (section 6.5.3)."""
    one = server()
    one.raw()
    assert one.peer(PREFACE, settings()) == [Ready()]
    assert one.sent() == [_ACKED]
    assert one.peer(settings(max_frame_size=20_000)) == []
    assert one.sent() == [_ACKED]


def test_an_acknowledgement_is_no_news() -> None:
    """SETTINGS with ACK bring nothing about (section 6.5)."""
    one = client().started()
    assert one.peer(frame(SETTINGS, ACK)) == []
    assert one.raw() == b""


def test_unknown_settings_are_ignored() -> None:
    """With any value (section 6.5.2)."""
    one = client()
    one.raw()
    assert one.peer(settings(unknown=(1 << 32) - 1)) == [Ready()]
    assert one.sent() == [_ACKED]


def test_the_preface_may_come_in_pieces() -> None:
    """Octet by octet, and nothing is said before all of it is there."""
    one = server()
    one.raw()
    for octet in PREFACE:
        assert one.peer(bytes((octet,))) == []
        assert one.raw() == b""
    assert one.peer(settings()) == [Ready()]


def test_client_may_ask_before_the_server_has_said_anything() -> None:
    """A request follows the preface at once (section 3.4)."""
    one = client()
    assert one.connection.request(REQUEST) == 1
    *_, last = read(one.raw().removeprefix(PREFACE))
    assert last.kind == HEADERS
    assert one.fields(last) == REQUEST
