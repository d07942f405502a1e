"""Qpid's message compression, at deliveries, single gets and returns."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest
from pamqp import commands, header

from services.common.message.amqp_0_9 import FORMAT
from services.gateway.answers import Deliveries, Got, Returned
from services.gateway.protocols.amqp_0_9.compression import PROPERTY, recoding_for
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from tests.support.amqp_playbook import Playbook
from tests.support.messages import facts, kind, published

PLAIN = FORMAT.with_text(b"\x10\x00\x02", "content-type", "text/plain")
GZIPPED = FORMAT.with_text(PLAIN, "content-encoding", "gzip")
TEXT = b"text " * 20
LIMITS = Amqp09Limits(max_message_size=10_000, message_compression_threshold=200)


def _for(said: Any, limits: Amqp09Limits = LIMITS) -> Any:
    return recoding_for({} if said is None else {PROPERTY: said}, limits)


def _unzipped(properties: list[bytes], bodies: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    columns: tuple[list[bytes], list[bytes]] = _for("false")(properties, bodies)
    return columns


def test_a_client_that_says_nothing() -> None:
    """Nothing is done: not one look at a message. Broker-J takes it not to understand gzip, where that is set."""
    assert _for(None) is None
    assert _for(None, Amqp09Limits(message_compression="assumed"))([GZIPPED], [gzip.compress(TEXT)]) == (
        [PLAIN],
        [TEXT],
    )
    for said in ("true", "false", None):
        assert _for(said, Amqp09Limits(message_compression="none")) is None


@pytest.mark.parametrize("said", [True, "true", "True"])
def test_a_client_that_understands(said: Any) -> None:
    """What is gzipped comes as it is, large bodies without an encoding come gzipped."""
    small, large, zipped = b"s" * 200, b"l" * 201, gzip.compress(TEXT * 100)
    other = FORMAT.with_text(PLAIN, "content-encoding", "utf-8")
    properties, bodies = _for(said)([PLAIN, PLAIN, GZIPPED, other], [small, large, zipped, large])
    assert properties == [PLAIN, GZIPPED, GZIPPED, other]
    assert (bodies[0], bodies[2:]) == (small, [zipped, large])
    assert gzip.decompress(bodies[1]) == large


@pytest.mark.parametrize("said", [False, "false", "no"])
def test_a_client_that_does_not(said: Any) -> None:
    """What is gzipped comes unzipped, and does not say any more that it is; all else comes as it is."""
    deflated = FORMAT.with_text(PLAIN, "content-encoding", "deflate")
    columns = _for(said)([PLAIN, GZIPPED, deflated, PLAIN], [b"a", gzip.compress(TEXT), zlib.compress(TEXT), TEXT * 9])
    assert columns == ([PLAIN, PLAIN, deflated, PLAIN], [b"a", TEXT, zlib.compress(TEXT), TEXT * 9])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no gzip",
        zlib.compress(TEXT),
        gzip.compress(TEXT)[:-1],
        gzip.compress(TEXT)[:-8] + bytes(8),
        gzip.compress(TEXT) + b"more",
        gzip.compress(TEXT) * 2,
        gzip.compress(bytes(10_001)),
    ],
    ids=["empty", "text", "zlib", "cut", "checksum", "more", "two", "too large"],
)
def test_what_cannot_be_unzipped(body: bytes) -> None:
    """Comes as its publisher sent it, and the others of the batch unzipped."""
    columns = _unzipped([GZIPPED] * 3, [gzip.compress(b"1"), body, gzip.compress(b"2")])
    assert columns == ([PLAIN, GZIPPED, PLAIN], [b"1", body, b"2"])


def test_the_largest_message() -> None:
    """Exactly as large as a message may be."""
    assert _unzipped([GZIPPED], [gzip.compress(bytes(10_000))]) == ([PLAIN], [bytes(10_000)])


def test_many_bombs_are_no_more_than_one() -> None:
    """What comes of a batch is bounded by its size: a thousand small messages do not become a thousand large ones."""
    bomb = gzip.compress(bytes(10_000), 9)
    _, bodies = _unzipped([GZIPPED] * 1000, [bomb] * 1000)
    assert sum(map(len, bodies)) <= 17 * 1000 * len(bomb)
    assert bodies[0] == bytes(10_000)
    assert bodies[-1] == bomb


def test_ordinary_text_is_no_bomb() -> None:
    """Of a batch that shrank to a tenth, all comes unzipped, also when it is more than the largest message."""
    texts = [bytes(range(number, number + 100)) * 10 for number in range(100)]
    assert _unzipped([GZIPPED] * 100, [gzip.compress(text) for text in texts])[1] == texts


def test_an_encoding_that_is_no_text() -> None:
    """Is left as it is."""
    odd = b"\x40\x00\x01\xff"
    assert _unzipped([odd], [gzip.compress(TEXT)]) == ([odd], [gzip.compress(TEXT)])
    assert _for("true")([odd], [b"l" * 201]) == ([odd], [b"l" * 201])


def _book(said: str) -> Playbook:
    book = Playbook(LIMITS)
    book.greeted()
    book.asks(0, commands.Connection.StartOk({PROPERTY: said}, "PLAIN", "\0guest\0guest", "en_US"))
    book.engine.authenticated()
    book.sent()
    assert book.client(0, commands.Connection.TuneOk(0, 4096, 0)) == []
    book.does(0, commands.Connection.Open("/"))
    book.does(1, commands.Channel.Open())
    return book


def _message(book: Playbook) -> tuple[str | None, int, bytes]:
    """Its encoding, the size that it tells, its body."""
    [_, (_, head), *pieces] = book.sent()
    assert isinstance(head, header.ContentHeader)
    return head.properties.content_encoding, head.body_size, b"".join(piece.value for _, piece in pieces)


@pytest.mark.parametrize("way", ["deliver", "get", "return"])
def test_every_way_to_a_client(way: str) -> None:
    """A body of several frames, unzipped; the size of what is sent is told."""
    text, zipped = bytes(9_999), gzip.compress(bytes(9_999))
    book = _book("false")
    if way == "deliver":
        book.engine.deliver(1, Deliveries("t", 1, False, [facts()], [GZIPPED], [zipped]))
    elif way == "get":
        book.engine.succeed(book.asks(1, commands.Basic.Get(0, "q")), Got(1, False, facts(), GZIPPED, zipped, 0))
    else:
        publish = published([zipped], kind(), properties=[GZIPPED])
        book.engine.returned(1, Returned(publish, [0]))
    assert _message(book) == (None, 9_999, text)


def test_a_large_body_for_a_client_that_understands() -> None:
    """Goes gzipped, and says so."""
    book = _book("true")
    book.engine.deliver(1, Deliveries("t", 1, False, [facts()], [PLAIN], [bytes(20_000)]))
    encoding, size, body = _message(book)
    assert (encoding, size) == ("gzip", len(body))
    assert gzip.decompress(body) == bytes(20_000)


@pytest.mark.parametrize(("compression", "told"), [("none", "false"), ("negotiated", "true"), ("assumed", "true")])
def test_the_broker_says_whether_it_does(compression: Any, told: str) -> None:
    """Among its properties, as text."""
    book = Playbook(Amqp09Limits(message_compression=compression))
    book.engine.receive(b"AMQP\x00\x00\x09\x01")
    [(_, start)] = book.sent()
    assert start.server_properties[PROPERTY] == told
