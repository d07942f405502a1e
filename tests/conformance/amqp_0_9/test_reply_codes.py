"""Reply codes and their reach, as the specification of AMQP 0-9-1 has them (general.tex sections and the XML)."""

from __future__ import annotations

import pytest
from pamqp import commands, header

from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.vocabulary import Close, EndSessions, Publish
from tests.support.amqp_playbook import Playbook, content, written


def _frame(kind: int, channel: int, payload: bytes, end: int = 0xCE) -> bytes:
    return bytes((kind,)) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + bytes((end,))


def _method(channel: int, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
    return _frame(1, channel, class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big") + arguments)


_PUBLISH = written(1, commands.Basic.Publish(routing_key="q"))
_HEADER = _frame(2, 1, b"\0\x3c\0\0" + (5).to_bytes(8, "big") + b"\0\0")


@pytest.mark.specification("4.2.3")
@pytest.mark.parametrize(
    "data",
    [
        _frame(8, 0, b"", end=0xCD),
        _frame(1, 1, b"\0\x3c\0\x0a" + b"\0" * 7, end=0),
        _frame(9, 0, b""),
        _frame(0, 0, b""),
        b"\x01\0\0\xff\xff\xff\xff",
        b"\x01\0\0" + (4096 - 7).to_bytes(4, "big"),
        _frame(8, 1, b""),
        _frame(8, 0, b"x"),
        _PUBLISH + _HEADER + _frame(3, 1, b"12345", end=0),
        written(1, commands.Basic.Ack(1))[:-1] + b"\0",
    ],
    ids=["end", "method end", "type 9", "type 0", "huge", "one too large", "beat 1", "beat x", "body end", "ack end"],
)
def test_what_is_no_frame_is_a_frame_error(data: bytes) -> None:
    """501, and nothing more is read: where the next frame begins is unknown."""
    book = Playbook().running(frame_max=4096)
    close = book.engine.receive(data)[-1]
    assert isinstance(close, Close)
    assert "FRAME_ERROR" in close.reason
    assert book.engine.receive(written(0, commands.Connection.Close(200, "", 0, 0))) == []
    assert book.closed_connection()[0] == 501


@pytest.mark.specification("4.2.3")
def test_frames_of_the_agreed_size_are_taken() -> None:
    """frame-max counts the frame's head and end."""
    book = Playbook().running(frame_max=4096)
    [publish] = book.engine.receive(content(1, b"x" * 4088))
    assert len(publish.bodies[0]) == 4088  # type: ignore[attr-defined]


def _with_headers(channel: int, table: bytes) -> list[bytes]:
    head = b"\0\x3c\0\0" + (1).to_bytes(8, "big") + b"\x20\x80" + len(table).to_bytes(4, "big") + table + b"\2id"
    publish = written(channel, commands.Basic.Publish(routing_key="q"))
    return [publish, _frame(2, channel, head), _frame(3, channel, b"x")]


_GOOD = b"\1kS\0\0\0\2ab\1nI\0\0\0\5\1tF\0\0\0\4\1kt\1"


@pytest.mark.specification("4.2.5.5")
@pytest.mark.parametrize(
    "table",
    [
        _GOOD.replace(b"S", b"?"),
        _GOOD.replace(b"\0\2ab", b"\0\3ab"),
        _GOOD.replace(b"\0\4", b"\0\3"),
        _GOOD.replace(b"k", b"\xff"),
        _GOOD[:-1],
        _GOOD + b"\0",
    ],
    ids=["type", "string too long", "table too short", "name not text", "cut off", "more behind"],
)
@pytest.mark.parametrize("known", [0, 1, 20], ids=["first", "second", "of a known layout"])
@pytest.mark.parametrize("together", [True, False], ids=["whole", "in parts"])
def test_headers_that_are_no_table_end_the_connection(table: bytes, known: int, together: bool) -> None:
    """502: what came before them, on any channel, is published; they are not, nor what comes behind them."""
    book = Playbook().running(1, 2)
    before = [_with_headers(1 + number % 2, _GOOD.replace(b"ab", b"%02d" % number)) for number in range(known)]
    behind = content(2, b"y") + content(1, b"z")
    pieces = [frame for frames in [*before, _with_headers(1, table)] for frame in frames] + [behind]
    requests = [
        request for piece in ([b"".join(pieces)] if together else pieces) for request in book.engine.receive(piece)
    ]
    assert sum(len(request.bodies) for request in requests if isinstance(request, Publish)) == known
    assert requests[-1] == EndSessions(0)
    assert book.closed_connection() == (502, 60, 40)


@pytest.mark.specification("1.2 syntax-error")
@pytest.mark.parametrize(
    "data",
    [
        _frame(1, 1, b"\0\x3c"),
        _method(1, 60, 10),
        _method(1, 60, 10, b"\0" * 8),
        _method(1, 50, 10, b"\0\0\x01\xff\0\0\0\0\0"),
        _method(1, 50, 10, b"\0\0\x05q\0\0\0\0\0"),
        _method(1, 50, 10, b"\0\0\x01q\0\0\0\0\x03\x01k?"),
        _method(1, 60, 40, b"\0\0\x01"),
        _PUBLISH + _frame(2, 1, b"\0\x3c"),
        _PUBLISH + _frame(2, 1, b"\0\x3c\0\0" + (0).to_bytes(8, "big") + b"\x80\0\x05a"),
    ],
    ids=["no method", "none", "too many", "utf-8", "short string", "table", "publish", "no header", "properties"],
)
def test_arguments_that_cannot_be_read_are_a_syntax_error(data: bytes) -> None:
    """502, on the connection."""
    book = Playbook().running()
    assert book.engine.receive(data) == [EndSessions(0)]
    assert book.closed_connection()[0] == 502
    assert book.engine.closing


@pytest.mark.specification("1.2 command-invalid")
@pytest.mark.parametrize(
    ("data", "ids"),
    [
        (written(1, commands.Basic.Deliver("t", 1, False, "", "q")), (60, 60)),
        (written(1, commands.Queue.DeclareOk("q", 0, 0)), (50, 11)),
        (written(1, commands.Channel.CloseOk()), (20, 41)),
        (written(0, commands.Connection.TuneOk(0, 0, 0)), (10, 31)),
        (written(0, commands.Connection.Open("/")), (10, 40)),
        (written(0, commands.Connection.CloseOk()), (10, 51)),
        (written(0, commands.Channel.Open()), (20, 10)),
        (written(0, commands.Basic.Qos()), (60, 10)),
        (written(1, commands.Connection.Close(200, "", 0, 0)), (10, 50)),
        (written(7, commands.Connection.Close(200, "", 0, 0)), (10, 50)),
    ],
)
def test_methods_out_of_place_are_invalid(data: bytes, ids: tuple[int, int]) -> None:
    """503: a server's method, one of another state, a channel's on channel 0, a connection's on another (4.2.3)."""
    book = Playbook().running()
    book.engine.receive(data)
    assert book.closed_connection() == (503, *ids)


@pytest.mark.specification("2.2.4")
@pytest.mark.parametrize(
    "data",
    [
        written(0, commands.Connection.Open("/")),
        written(0, commands.Connection.TuneOk(0, 0, 0)),
        written(0, commands.Connection.SecureOk("x")),
        written(1, commands.Channel.Open()),
        written(0, commands.Connection.StartOk({}, "NO-SUCH", "x", "en_US")),
    ],
    ids=["open", "tune-ok", "secure-ok", "channel", "mechanism"],
)
def test_the_handshake_has_an_order(data: bytes) -> None:
    """503 for a step that is not next, and for a mechanism that was not offered."""
    book = Playbook().greeted()
    assert book.engine.receive(data) == []
    assert book.closed_connection()[0] == 503


@pytest.mark.specification("1.2 not-implemented")
@pytest.mark.parametrize(
    ("data", "ids"),
    [
        (_method(1, 60, 200), (60, 200)),
        (_method(1, 99, 1), (99, 1)),
        (_method(0, 10, 99), (10, 99)),
        (written(1, commands.Basic.Qos(prefetch_size=1)), (60, 10)),
        (written(1, commands.Basic.Recover(requeue=False)), (60, 110)),
    ],
)
def test_what_is_not_offered_is_not_implemented(data: bytes, ids: tuple[int, int]) -> None:
    """540: unknown methods, prefetch by size, recovery to the same consumer."""
    book = Playbook().running()
    book.engine.receive(data)
    assert book.closed_connection() == (540, *ids)


@pytest.mark.specification("1.2 channel-error")
@pytest.mark.parametrize(
    "data",
    [
        written(2, commands.Queue.Declare(queue="q")),
        written(2, commands.Channel.Close(200, "", 0, 0)),
        written(1, commands.Channel.Open()),
        _method(2, 99, 1),
        content(2, b"x"),
        written(2, header.ContentHeader()),
        written(0, header.ContentHeader()),
        written(0, b"body"),
        written(2, b"body"),
    ],
    ids=["not open", "close", "twice", "unknown", "content", "header", "header 0", "body 0", "body"],
)
def test_channels_that_are_not_open_are_a_channel_error(data: bytes) -> None:
    """504: nothing but open on a channel that is not, no second open, no content on channel 0 (4.2.6.1)."""
    book = Playbook().running()
    book.engine.receive(data)
    assert book.closed_connection()[0] == 504


@pytest.mark.specification("4.2.6")
@pytest.mark.parametrize(
    "data",
    [
        written(1, header.ContentHeader()),
        written(1, b"body"),
        _PUBLISH + written(1, commands.Basic.Qos()),
        _PUBLISH + _PUBLISH,
        _PUBLISH + written(1, commands.Channel.Close(200, "", 0, 0)),
        _PUBLISH + written(1, b"body"),
        _PUBLISH + _HEADER + _HEADER,
        _PUBLISH + _HEADER + _PUBLISH,
        _PUBLISH + _HEADER + written(1, b"123456"),
        _PUBLISH + _frame(2, 1, b"\0\x32\0\0" + b"\0" * 10),
        _PUBLISH + _frame(2, 1, b"\0\x3c\0\x01" + b"\0" * 10),
        content(1, b"") + written(1, b"x"),
    ],
    ids=[
        "header",
        "body",
        "method",
        "publish",
        "close",
        "body first",
        "header twice",
        "publish in body",
        "too much",
        "class",
        "weight",
        "after the end",
    ],
)
def test_content_out_of_place_is_unexpected(data: bytes) -> None:
    """505: content where none is expected, or something else where it is."""
    book = Playbook().running()
    book.engine.receive(data)
    assert book.closed_connection()[0] == 505


@pytest.mark.specification("1.2 precondition-failed")
def test_too_large_a_message_closes_its_channel() -> None:
    """406, as RabbitMQ, as soon as the header says so; the body is swallowed, other channels go on."""
    book = Playbook(Amqp09Limits(max_message_size=10_000)).running(1, 2)
    data = content(1, b"x" * 10_001)
    body_at = data.index(b"\x03\0\x01")
    book.ends(book.engine.receive(data[:body_at]))
    assert book.closed_channel(1) == (406, 60, 40)
    assert book.engine.receive(data[body_at:]) == []
    [publish] = book.engine.receive(content(2, b"x" * 10_000))
    assert len(publish.bodies[0]) == 10_000  # type: ignore[attr-defined]
    book.client(1, commands.Channel.CloseOk())
    assert isinstance(book.does(1, commands.Channel.Open()), commands.Channel.OpenOk)


@pytest.mark.specification("1.2 precondition-failed")
def test_too_large_a_message_in_one_frame() -> None:
    """The same when it comes in one piece, behind others that are not."""
    book = Playbook(Amqp09Limits(max_message_size=100)).running()
    publish, ended = book.engine.receive(content(1, b"x" * 100) + content(1, b"x" * 101) + content(1, b"x"))
    assert publish.bodies == [b"x" * 100]  # type: ignore[attr-defined]
    book.ends([ended])
    assert book.closed_channel() == (406, 60, 40)


@pytest.mark.specification("1.2 precondition-failed")
def test_an_invalid_expiration_closes_the_channel() -> None:
    """406, as RabbitMQ."""
    book = Playbook().running()
    publish, ended = book.engine.receive(content(1, b"a") + content(1, b"x", expiration="soon") + content(1, b"b"))
    assert publish.bodies == [b"a"]  # type: ignore[attr-defined]
    book.ends([ended])
    assert book.closed_channel() == (406, 60, 40)


@pytest.mark.specification("1.5.2.5")
def test_after_connection_close_everything_else_is_ignored() -> None:
    """Until close-ok, which ends it."""
    book = Playbook().running()
    book.engine.receive(written(1, commands.Basic.Deliver("t", 1, False, "", "q")))
    assert book.closed_connection()[0] == 503
    assert book.engine.receive(content(1, b"x") + written(1, commands.Channel.Open()) + _method(0, 10, 99)) == []
    assert book.raw() == b""
    [close] = book.client(0, commands.Connection.CloseOk())
    assert isinstance(close, Close)
    assert close.reason.startswith("COMMAND_INVALID")


@pytest.mark.specification("4.2.3")
def test_a_frame_error_after_close_ends_it_at_once() -> None:
    """There is nothing left to wait for."""
    book = Playbook().running()
    book.engine.receive(written(1, commands.Basic.Deliver("t", 1, False, "", "q")))
    assert book.closed_connection()[0] == 503
    assert [type(request) for request in book.engine.receive(b"\xff" * 7)] == [Close]
    assert book.raw() == b""
