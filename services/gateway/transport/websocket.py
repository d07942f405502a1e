"""WebSocket (RFC 6455) on a socket or on TLS: a protocol's bytes in binary messages, without regard to their bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Request,
    TextMessage,
)
from wsproto.utilities import RemoteProtocolError

from services.gateway.transport.web_head import Head, HeadRefused

SUBPROTOCOL = "amqp"

_NORMAL, _NO_TEXT = 1000, 1003  # section 7.4.1
_BAD, _FORBIDDEN, _TOO_LARGE = 400, 403, 431
_UNWRITTEN = 64 << 10  # unsent bytes above which pings are not answered: their sender reads nothing
_FRAMES = 500  # in a turn, which are 5 ms
_ANY_ORIGIN = "*"
_LONGEST = 200  # characters of an origin that the log repeats: a request may have thousands

Refused = Callable[[str], None]


class WebSocket(asyncio.Transport):
    """The transport of a protocol, and the protocol of the transport that carries it.

    A web page may open one from any browser that has loaded it, and browsers send its origin: `origins` are those that
    are allowed. A client that sends none is no browser. `refused` is told why a client is not served.
    """

    def __init__(
        self, carrier: asyncio.Transport, protocol: asyncio.Protocol, origins: Collection[str], refused: Refused
    ) -> None:
        super().__init__()
        self._carrier = carrier
        self._protocol = protocol
        self._origins = origins
        self._refused = refused
        self._open = False
        self._held = False  # the protocol has paused reading
        self._has_more = False  # frames that were read wait for the next turn …
        self._soon: asyncio.Handle | None = None  # … which this schedules
        self._head = Head()
        self._frames = WSConnection(ConnectionType.SERVER)

    # -------------------------------------------------------------- what comes

    def data_received(self, data: bytes) -> None:
        """Passes the contents of one read to the protocol at once, unless it has very many frames."""
        if self._carrier.is_closing():
            return
        try:
            parts = self._head.take(data)
        except HeadRefused as fault:
            self._reject(str(fault), _TOO_LARGE)
        else:
            for part in filter(None, parts):
                self._receive(part)

    def _receive(self, data: bytes) -> None:
        if self._carrier.is_closing():
            return
        try:
            self._frames.receive_data(data)
        except RemoteProtocolError as fault:
            self._reject(str(fault), getattr(fault.event_hint, "status_code", _BAD))
        except ValueError:  # the library raises it when it decodes headers
            self._reject("a header is not in ASCII", _BAD)
        else:
            if not self._has_more:
                self._hear()

    def _hear(self) -> None:
        """Handles so many frames in a turn of the loop: each takes as long as kilobytes, the smallest has six bytes."""
        self._soon = None
        if self._carrier.is_closing():
            return
        had_more, self._has_more = self._has_more, self._held
        heard = b"" if self._held else b"".join(self._heard())
        if self._has_more:
            self._carrier.pause_reading()
            self._hear_soon()
        if heard:
            self._protocol.data_received(heard)
        if had_more and not self._has_more and not self._held:
            self._carrier.resume_reading()

    def _hear_soon(self) -> None:
        if not self._soon and not self._held:
            self._soon = asyncio.get_running_loop().call_soon(self._hear)

    def _heard(self) -> Iterator[bytes]:
        for number, event in enumerate(self._frames.events(), 1):
            handle = self._EVENTS.get(type(event))
            if isinstance(event, BytesMessage):
                yield bytes(event.data)
            elif handle and not self._carrier.is_closing():
                handle(self, event)
            if number == _FRAMES:
                self._has_more = True
                return

    def _asked(self, request: Request) -> None:
        origin = next((value.decode("latin-1") for name, value in request.extra_headers if name == b"origin"), "")
        if origin and not {origin, _ANY_ORIGIN} & set(self._origins):
            self._reject(f"pages of {origin[:_LONGEST]} may not connect (HOPLINE_WEBSOCKET_ORIGINS)", _FORBIDDEN)
        elif SUBPROTOCOL not in request.subprotocols:
            self._reject(f"it asked for no subprotocol {SUBPROTOCOL}", _BAD)
        else:
            self._carrier.write(self._frames.send(AcceptConnection(subprotocol=SUBPROTOCOL)))
            self._open = True

    def _reject(self, reason: str, status: int) -> None:
        self._refused(reason)
        body = f"{reason}\n".encode()
        head = f"HTTP/1.1 {status} \r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        self._carrier.write(head.encode() + body)
        self._carrier.close()

    def _text(self, _message: TextMessage) -> None:
        self._end(_NO_TEXT, "AMQP is binary")

    def _ping(self, ping: Ping) -> None:
        if self._carrier.get_write_buffer_size() < _UNWRITTEN:
            self._carrier.write(self._frames.send(ping.response()))

    def _closed(self, close: CloseConnection) -> None:
        if self._open:
            self._open = False
            self._carrier.write(self._frames.send(close.response()))
        self._carrier.close()

    _EVENTS: ClassVar[Mapping[type[Event], Callable[[WebSocket, Any], None]]] = {
        Request: _asked,
        TextMessage: _text,
        Ping: _ping,
        CloseConnection: _closed,
    }

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, failure: Exception | None) -> None:
        """Both lead back to here; what refers to itself stays until the collector comes by, which is seldom."""
        self._open = False
        protocol, self._protocol, self._refused = self._protocol, asyncio.Protocol(), _unheard
        protocol.connection_lost(failure)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    # -------------------------------------------------------------- what goes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines((data,))

    def writelines(self, chunks: Iterable[bytes | bytearray | memoryview]) -> None:
        """Writes the chunks in one message."""
        if self._open:
            self._carrier.write(self._frames.send(BytesMessage(b"".join(chunks))))

    def close(self) -> None:
        self._end(_NORMAL, "")

    def _end(self, code: int, reason: str) -> None:
        if self._open:
            self._open = False
            self._carrier.write(self._frames.send(CloseConnection(code, reason)))
        self._carrier.close()

    def abort(self) -> None:
        self._carrier.abort()

    def can_write_eof(self) -> bool:
        return False

    # -------------------------------------------------------------- as the carrier

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def get_extra_info(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - as asyncio has it
        return self._carrier.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._carrier.is_closing()

    def is_reading(self) -> bool:
        return self._carrier.is_reading()

    def pause_reading(self) -> None:
        self._held = True
        self._carrier.pause_reading()

    def resume_reading(self) -> None:
        self._held = False
        if self._has_more:
            self._hear_soon()
        else:
            self._carrier.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._carrier.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._carrier.get_write_buffer_size()


def _unheard(_reason: str) -> None:
    """Who would have been told has gone."""
