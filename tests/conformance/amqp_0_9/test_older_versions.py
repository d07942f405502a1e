"""AMQP 0-8 and 0-9 as their XML has them, with what Qpid has added: the same engine, and a table of what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import pytest

from services.common.errors import NotFound
from services.gateway.answers import Deliveries
from services.gateway.protocols.amqp_0_9 import wire
from services.gateway.protocols.amqp_0_9.engine import AmqpEngine
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.protocols.amqp_0_9.version import Version
from services.gateway.protocols.amqp_0_9.versions import AMQP_0_8, AMQP_0_9, AMQP_0_9_1
from services.gateway.vocabulary import (
    Authenticate,
    Close,
    Consume,
    Echo,
    EndSessions,
    Open,
    OpenSession,
    Publish,
    Recover,
    Request,
)
from tests.support.messages import facts
from tests.support.raw_amqp import frame, method, short

OLDER = [AMQP_0_8, AMQP_0_9]
CLOSE = {AMQP_0_8.name: 60, AMQP_0_9.name: 50}  # the ids of connection.close; close-ok follows
OPEN_OK = {AMQP_0_8.name: b"", AMQP_0_9.name: bytes(4)}
_HEADERS = {
    AMQP_0_8.name: b"AMQP\x01\x01\x08\x00",
    AMQP_0_9.name: b"AMQP\x01\x01\x00\x09",
    AMQP_0_9_1.name: b"AMQP\x00\x00\x09\x01",
}
R = TypeVar("R", bound=Request)


class Wire:
    """An engine, and the bytes that a client of a version exchanges with it."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.engine = AmqpEngine(Amqp09Limits(), ("PLAIN",))

    def said(self) -> bytes:
        return b"".join(self.engine.data_to_send())

    def asks(self, data: bytes, kind: type[R]) -> R:
        [request] = self.engine.receive(data)
        assert isinstance(request, kind)
        return request

    def does(self, data: bytes, kind: type[Request], result: Any = None) -> bytes:
        """The client asks, the broker does it; what the client hears."""
        self.engine.succeed(self.asks(data, kind), result)
        return self.said()

    def running(self) -> Wire:
        """With channel 1."""
        assert self.engine.receive(_HEADERS[self.version.name]) == []
        start = self.said()
        assert start[7:13] == b"\x00\x0a\x00\x0a" + bytes([self.version.major, self.version.minor])
        start_ok = bytes(4) + short("PLAIN") + (8).to_bytes(4) + b"\0alice\0p" + short("en_US")
        self.asks(method(10, 11, start_ok, channel=0), Authenticate)
        self.engine.authenticated()
        tune = self.said()
        assert self.engine.receive(method(10, 31, tune[11:-1], channel=0)) == []
        opened = self.does(method(10, 40, short("/") + short("") + b"\x01", channel=0), Open)
        assert opened == method(10, 41, b"\0", channel=0)
        assert self.does(method(20, 10, b"\0"), OpenSession) == method(20, 11, OPEN_OK[self.version.name])
        return self


@pytest.fixture(params=OLDER, ids=lambda version: version.name)
def older(request: pytest.FixtureRequest) -> Wire:
    """A client of each of the older versions."""
    return Wire(request.param).running()


@pytest.mark.parametrize("version", OLDER, ids=lambda version: version.name)
def test_every_method_lies_as_the_specification_says(version: Version) -> None:
    """Ids, and wire types in their order, of classes connection, channel, access, exchange, queue, basic and tx."""
    listed = Path(__file__).with_name(f"methods_{version.name[5:].replace('-', '_')}.txt").read_text().splitlines()
    for line in listed:
        code, name, *types = line.split()
        class_id, method_id = map(int, code.split("."))
        kind = version.methods[class_id << 16 | method_id]
        layout = version.layouts.get(kind, kind)
        assert kind.name.partition(".")[0] == name.partition(".")[0]
        assert version.code_of(kind) == class_id << 16 | method_id, name
        its = ["table" if each is wire.Wire.TABLE_IF_THERE else each.value for each in layout.wires]
        assert its == types, name


@pytest.mark.parametrize("version", [*OLDER, AMQP_0_9_1], ids=lambda version: version.name)
def test_the_header_decides(version: Version) -> None:
    """In as many pieces as it likes to come; the record says which version is spoken."""
    engine = AmqpEngine(Amqp09Limits(), ("PLAIN",))
    for octet in _HEADERS[version.name]:
        assert not engine.data_to_send()
        assert engine.receive(bytes([octet])) == []
    assert engine.data_to_send()
    assert engine.name == version.name


def test_headers_that_are_no_table(older: Wire) -> None:
    """The connection ends with a syntax error, as with 0-9-1."""
    table = b"\0\0\0\4\1k?\0"
    header = b"\x00\x3c\x00\x00" + (1).to_bytes(8) + b"\x20\x00" + table
    content = frame(2, 1, header) + frame(3, 1, b"x")
    publish = method(60, 40, b"\x00\x01\x00" + short("q") + b"\0")
    assert older.does(publish + content, EndSessions)[11:13] == (502).to_bytes(2)


def test_another_version_hears_of_the_newest() -> None:
    """Its own header, and nothing else (section 4.2.2)."""
    wire_ = Wire(AMQP_0_9_1)
    close = wire_.asks(b"AMQP\x01\x01\x00\x0a", Close)
    assert "another version of AMQP" in close.reason
    assert wire_.said() == b"AMQP\x00\x00\x09\x01"


def test_tickets(older: Wire) -> None:
    """access.request is always granted: access is checked for each request."""
    assert older.does(method(30, 10, short("/data") + b"\x1f"), Echo) == method(30, 11, b"\x00\x01")


def test_a_message_there_and_back(older: Wire) -> None:
    """basic.publish and basic.deliver, with the properties of 0-9-1 (whose class has another name for the last)."""
    head = b"\x02\x00\x01" + (15).to_bytes(4) + b"\x00\x3c\x00\x00" + (4).to_bytes(8) + b"\x10\x00\x02"
    content = head + b"\xce" + b"\x03\x00\x01" + (4).to_bytes(4) + b"body\xce"
    publish = older.asks(method(60, 40, b"\x00\x01" + short("") + short("q") + b"\0") + content, Publish)
    assert (publish.bodies, publish.kinds[0].facts.routing_key) == ([b"body"], "q")
    assert publish.kinds[0].facts.persistent
    older.engine.deliver(1, Deliveries("t", 7, False, [facts("", "q")], publish.properties, publish.bodies))
    deliver = method(60, 60, short("t") + (7).to_bytes(8) + b"\0" + short("") + short("q"))
    assert older.said() == deliver + content


@pytest.mark.parametrize(("rest", "arguments"), [(b"", {}), (b"\x00\x00\x00\x04\x01xt\x01", {"x": True})])
def test_consume_with_and_without_arguments(rest: bytes, arguments: dict[str, object]) -> None:
    """0-8 ends before them; Qpid's clients of 0-8 have sent them."""
    data = method(60, 20, b"\x00\x01" + short("q") + short("t") + b"\x00" + rest)
    assert Wire(AMQP_0_8).running().asks(data, Consume).arguments == arguments


def test_recover(older: Wire) -> None:
    """60.100 has no answer; Qpid's 60.102 has 60.101."""
    older.engine.succeed(older.asks(method(60, 100, b"\x01"), Recover))
    assert older.said() == b""
    assert older.does(method(60, 102, b"\x01"), Recover) == method(60, 101)


def test_ping() -> None:
    """0-9 alone has it, and pong."""
    assert Wire(AMQP_0_9).running().does(method(20, 60), Echo) == method(20, 70)
    older = Wire(AMQP_0_8).running()
    assert older.does(method(20, 60), EndSessions)[7:13] == b"\x00\x0a\x00\x3c" + (540).to_bytes(2)


def test_the_connection_ends(older: Wire) -> None:
    """By either side: connection.close is 10.60 in 0-8."""
    code = CLOSE[older.version.name]
    other = Wire(older.version).running()
    close = other.asks(method(10, code, b"\x00\xc8" + short("bye") + bytes(4), channel=0), Close)
    other.engine.succeed(close)
    assert other.said() == method(10, code + 1, channel=0)
    told = older.does(method(70, 10), EndSessions)  # class file: optional, and not served
    assert told[7:13] == b"\x00\x0a" + code.to_bytes(2) + (540).to_bytes(2)
    assert isinstance(older.asks(method(10, code + 1, channel=0), Close), Close)


def test_reply_codes(older: Wire) -> None:
    """unexpected-frame came with 0-9-1: frame-error stands for it."""
    header = b"\x02\x00\x01" + (14).to_bytes(4) + b"\x00\x3c\x00\x00" + bytes(10) + b"\xce"
    said = older.does(header, EndSessions)
    assert said[7:13] == b"\x00\x0a" + CLOSE[older.version.name].to_bytes(2) + (501).to_bytes(2)


def test_what_later_versions_brought(older: Wire) -> None:
    """exchange.bind is RabbitMQ's, for 0-9-1."""
    assert older.does(method(40, 30, bytes(9)), EndSessions)[11:13] == (540).to_bytes(2)


def test_a_channel_is_closed(older: Wire) -> None:
    """The error names the method that is to blame by its id in this version."""
    request = older.asks(method(60, 102, b"\x01"), Recover)
    older.engine.fail(request, NotFound("gone"))
    assert older.said().endswith(b"\x00\x3c\x00\x66\xce")
