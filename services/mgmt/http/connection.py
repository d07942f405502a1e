"""One connection over HTTP: uvicorn's, with an end to what its client may take time for.

uvicorn bounds only how long a connection is kept that has asked, and sends nothing more. A head that does not come to
its end, or an answer that is not read, would stay.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any, NamedTuple

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from services.common.errors import SyntaxFault
from services.mgmt.http.bodies import Bodies
from services.mgmt.http.doors import SIGNED_IN, Doors
from services.mgmt.http.flow import Flow
from services.mgmt.http.parser import Parser
from services.mgmt.http.unread import Unread

_READ = 64 << 10
"""Bytes of an answer that are to be read in the time: a few of them each time are none."""
_BEHIND = 64 << 10
"""Bytes of a body that are looked at when its answer has been given: a small one's client asks again."""
_LARGE_READ = 200_000  # bytes, after which others have their turn: the loop would read on, for megabytes
_REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n"
    b"retry-after: 1\r\nconnection: close\r\n\r\ntoo many connections\n"
)


class Bounds(NamedTuple):
    """For connections: seconds for a head, and for reading some of an answer."""

    doors: Doors
    bodies: Bodies
    answers: Unread
    head: float
    unread: float


class Config(uvicorn.Config):
    """The only thing that uvicorn hands to all of its connections."""

    def __init__(self, bounds: Bounds, app: Any, **others: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(app, http=HttpConnection, **others)
        self.bounds = bounds


class HttpConnection(H11Protocol):
    """Made by uvicorn for each accepted socket."""

    config: Config
    conn: Parser
    flow: Flow
    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _behind = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn says so too
        super().connection_made(transport)
        self.conn, self.flow = Parser(), Flow(transport)
        self._application, self.app = self.app, self._ask
        if self.config.bounds.doors.come(self, self.client[0] if self.client else ""):
            self._expect_head()
        else:
            transport.write(_REFUSED)
            transport.close()

    async def _ask(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI says
        scope[SIGNED_IN] = partial(self.config.bounds.doors.signed_in, self)
        await self._application(scope, receive, send)

    def connection_lost(self, exc: Exception | None) -> None:
        self.config.bounds.doors.leave(self)
        self.config.bounds.bodies.forget(self)
        self._end_head()
        self._end_unread()
        self.app = self._application  # else it would refer to itself
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_too_much(len(data)):
            self._read(data)
        self._give_turns(len(data))

    def _read(self, data: bytes) -> None:
        super().data_received(data)
        self._note(len(data))

    def _note(self, more: int) -> None:
        self._look()
        if self._is_asked:
            self.config.bounds.bodies.note(self, more, whole=not self.cycle.more_body)
        else:
            self._expect_head()

    def handle_events(self) -> None:
        """Called by uvicorn as well, when a request is answered behind which the next one may be there already."""
        self.conn.begin_turn()
        super().handle_events()

    def on_response_complete(self) -> None:
        self._behind = 0
        super().on_response_complete()
        self.config.bounds.bodies.forget(self)
        self._look()
        self._expect_end()
        self._give_turns(0)

    def timeout_keep_alive_handler(self) -> None:
        if not self.transport.is_closing():
            super().timeout_keep_alive_handler()
            self._expect_end()

    def send_400_response(self, msg: str) -> None:
        """It is the answer of a request that was begun; where there is one already, this is the end."""
        if self._is_asked:
            self.cycle.disconnected = True
        try:
            self._refuse(self.conn.fault or msg)
            self._expect_end()
        except h11.LocalProtocolError:
            self.cut_off()

    def _refuse(self, reason: str) -> None:
        """As JSON, as every other error, in the form of all three APIs: whose path it would have been is not known."""
        told = {"error": SyntaxFault.__name__, "reason": reason, "errorMessage": reason}
        body = json.dumps(told).encode() + b"\n"
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        answer = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_unread()
        self._expect_end()
        self._look()

    def cut_off(self) -> None:
        """Closes it at once."""
        self.transport.abort()

    def _give_turns(self, size: int) -> None:
        is_long = size >= _LARGE_READ or self.conn.is_behind
        if is_long and not self.flow.held and not self.transport.is_closing():
            self.flow.hold()
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self.transport.is_closing():
            return
        self.flow.release()
        if self.conn.is_behind:
            self.handle_events()
            self._note(0)
            self._give_turns(0)

    def _is_too_much(self, size: int) -> bool:
        """Whether this is the rest of a large body that has its answer, which nobody looks at.

        A client that sends all before it reads gets to its answer, and then to an end: it has no longer than a head.
        """
        if self._is_asked or self.conn.their_state is not h11.SEND_BODY:
            return False
        before, self._behind = self._behind, self._behind + size
        if before <= _BEHIND < self._behind:
            self._expect_head()
            self.transport.write_eof()
        return self._behind > _BEHIND

    @property
    def _is_asked(self) -> bool:
        """Whether there is a request without an answer."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first, whatever it says
        return cycle is not None and not cycle.response_complete

    def _look(self) -> None:
        """Whose turn it is."""
        if self._is_asked:
            self._end_head()
        if self._is_asked and not self.cycle.more_body and not self.flow.write_paused:
            self.config.bounds.doors.server_s_turn(self)
        else:
            self.config.bounds.doors.client_s_turn(self)

    def _expect_head(self) -> None:
        """Once for each, however many parts it comes in; the rest of a body that was answered belongs to the next."""
        if self._head is None:
            self._head = self.loop.call_later(self.config.bounds.head, self.cut_off)

    def _expect_reading(self) -> None:
        size = self.transport.get_write_buffer_size()
        self.config.bounds.answers.note(self, size)
        self._unread = self.loop.call_later(self.config.bounds.unread, self._look_at_reading, size)

    def _expect_end(self) -> None:
        """What is left of an answer when its connection is closed is to be read as well, however little it is."""
        if self.transport.is_closing() and self._unread is None:
            self._expect_reading()

    def _look_at_reading(self, before: int) -> None:
        if self.transport.get_write_buffer_size() > before - _READ:
            self.cut_off()
        else:
            self._expect_reading()

    def _end_head(self) -> None:
        if self._head:
            self._head.cancel()
            self._head = None

    def _end_unread(self) -> None:
        self.config.bounds.answers.forget(self)
        if self._unread:
            self._unread.cancel()
            self._unread = None
