"""An HTTP/2 connection on a socket of the event loop: what is common to client and server.

gRPC's own runtime hands every read and write from its threads to the loop's and back, which takes longer than all that
a broker does with a message. Here the loop reads, handles the message and writes the answer in one turn.
"""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple, cast

from services.common.http2 import events as e
from services.common.http2.connection import Http2Connection
from services.common.http2.errors import ConnectionFault, ErrorCode
from services.common.http2.messages import ToSend
from services.common.streams.stream import Stream, StreamListener

LARGEST_MESSAGE = 256 << 20  # a body of 100 MiB travels in one message, with room for what goes with it
_BATCHES = 1 << 20  # bytes that the kernel may hold for a local peer: whole batches, while this process goes on
_READ_FIRST = (
    0.001  # seconds: uvloop may run a timer before it looks at sockets, but no second one that the first began
)
_STRANGER = "keep from this port what is no process of the stack; if it is one, report it with these lines"
_PEERS_LOG = "see in its log why; it is called again by itself"
_SEE_IT = "see that it runs, gets its share of the machine, and can be reached"


class Doubt(NamedTuple):
    """When a peer is pinged, and given up."""

    quiet: float  # seconds without a word from it, after which it is pinged …
    answer: float  # … and how long its answer may take
    locally: bool = False
    """Also of this machine: the kernel tells when a local peer is gone, but not when it hangs."""
    untaken: float = 5.0
    """Seconds for which its machine may take nothing of what is sent: one that is slow takes what it has room for."""


USUAL: Final = Doubt(5.0, 2.0)


class Endpoint(asyncio.BufferedProtocol, ABC):
    """One end of a connection, and its streams."""

    def __init__(self, connection: Http2Connection, address: str, doubt: Doubt | None = None) -> None:
        """`address` is the peer's, or the one listened on."""
        self.address = address
        self._doubt = doubt or USUAL
        self.lost = False
        self._connection = connection
        self._sending = connection.sending
        self._streams: dict[int, tuple[Stream, StreamListener]] = {}
        self._transport: asyncio.Transport | None = None
        self._reading = self._paused = self._was_full = self._gathers = False
        self._behind: dict[int, StreamListener] = {}  # streams of which something waited, when they were asked
        self._silent = False  # nothing came since the last look
        self._keepalive: asyncio.TimerHandle | None = None

    # -------------------------------------------------------------- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        # What is written goes to the kernel at once, while the rest of the turn is still to come.
        self._transport.set_write_buffer_limits(0)
        sock: socket.socket = transport.get_extra_info("socket")
        if self.address.startswith("unix:"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BATCHES)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(self._doubt.untaken * 1000))
        # Pings wake two processes, for nothing where the kernel tells enough.
        if self._doubt.locally or not self.address.startswith("unix:"):
            self._keepalive = asyncio.get_running_loop().call_later(self._doubt.quiet, self._look)
        self.flush()

    def get_buffer(self, _size: int) -> memoryview:
        return self._connection.room()

    def buffer_updated(self, count: int) -> None:
        self._silent = False
        self._reading = True
        try:
            for event in self._connection.received(count):
                self._HANDLERS[type(event)](self, event)
        except ConnectionFault as fault:
            self.warn("the peer broke the rules of HTTP/2; its connection ends", reason=str(fault), do=_STRANGER)
            self.close(str(fault))
        finally:
            self._reading = False
        self.flush()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self.flush()

    def connection_lost(self, failure: Exception | None) -> None:
        self.lost = True
        if self._keepalive:
            self._keepalive.cancel()
        self._end_all(str(failure or "the peer closed the connection"))

    # -------------------------------------------------------------- writing

    @property
    def full(self) -> bool:
        """Whether the socket or the peer takes less than was written."""
        full = self._paused or self._connection.unsent > 0
        self._was_full |= full  # until all listeners are told: another stream may ask when it is full no longer
        return full

    def waits(self, number: int) -> bool:
        """Whether something of a stream waits for the socket or the peer; then its listener hears `writable`.

        Of one that is over nothing does: nobody would ever be told.
        """
        if (found := self._streams.get(number)) is None or not (self._paused or self._connection.waits(number)):
            return False
        self._behind[number] = found[1]
        return True

    def hold(self, number: int, *, held: bool) -> None:
        """As Stream.hold."""
        self._connection.hold(number, held=held)
        self.flush()

    def flush(self) -> None:
        """Writes to the socket what there is; when it is full no longer, tells the listeners."""
        if self._reading or self._gathers or self.lost:
            return
        self._write()
        if self._was_full and not self.full:
            self._was_full = False
            for number, (_, listener) in list(self._streams.items()):
                try:
                    listener.writable()
                except Exception as failure:  # noqa: BLE001 - `failed` logs it
                    self.failed(number, failure)
            self._write()
        if self._behind:
            for number in [number for number in self._behind if not self.waits(number)]:
                if number in self._behind:
                    self._behind.pop(number).writable()

    def write(self, number: int, message: ToSend) -> None:
        self._connection.send(number, message)
        if not self._reading:
            self._write()

    def finish(self, number: int, message: ToSend, trailers: e.Fields) -> None:
        self._connection.send(number, message)
        self.end(number, trailers)

    def end(self, number: int, trailers: e.Fields) -> None:
        self._connection.end(number, trailers)
        self.flush()

    def reset(self, number: int, code: ErrorCode) -> None:
        self._behind.pop(number, None)
        if found := self._streams.pop(number, None):
            found[0].is_over = True
        self._connection.reset(number, code)
        self.flush()

    def close(self, reason: str = "") -> None:
        """Ends all streams, and the connection once everything is written."""
        self._end_all(reason)
        self._gathers = False
        if self._transport and not self.lost:
            self._write()
            # A peer that reads nothing would keep the connection from ending.
            (self._transport.abort if self._paused else self._transport.close)()

    def gather(self) -> None:
        """What is written until the end of the turn leaves in one piece: a peer is woken once, not for each part."""
        if not self._gathers and not self._reading:
            self._gathers = True
            asyncio.get_running_loop().call_soon(self._scatter)

    def _scatter(self) -> None:
        self._gathers = False
        self.flush()

    def _write(self) -> None:
        if self._paused or self._gathers or not self._sending.out:
            return  # the connection keeps the data, and thereby knows that it is full
        chunks = self._connection.data_to_send()
        if chunks and self._transport and not self._transport.is_closing():
            self._transport.writelines(chunks)

    # -------------------------------------------------------------- what the peer says

    def _message(self, message: e.Message) -> None:
        found = self._streams.get(message.stream)
        if found is None:
            return
        try:
            found[1].received(message.data)
            if self._sending.out:
                self._write()
        except Exception as failure:  # noqa: BLE001 - `failed` logs it
            self.failed(message.stream, failure)

    @abstractmethod
    def headers(self, headers: e.Headers) -> None:
        """A request's or a response's header fields, or trailers."""

    def ready(self, _ready: e.Ready) -> None:
        """The peer speaks HTTP/2."""

    def more_streams(self, _more: e.MoreStreams) -> None:
        """The peer takes more of them than it did."""

    @abstractmethod
    def peer_ended(self, ended: e.Ended) -> None:
        """The peer sends nothing more on a stream."""

    def was_reset(self, reset: e.Reset) -> None:
        """The peer ended a stream early, or broke its rules."""
        self.over(reset.stream, reset.text or f"the peer ended the stream ({_name(reset.code)})")

    def gone_away(self, gone: e.GoneAway) -> None:
        """The peer opens and accepts no more streams."""
        if gone.code != ErrorCode.NO_ERROR:
            self.warn("the peer ends the connection", reason=gone.text or _name(gone.code), do=_PEERS_LOG)

    def warn(self, event: str, **about: object) -> None:
        """Logs what the peer did wrong."""
        _log().warning(event, at=self.address, **about)

    def _fault(self, event: str, failure: Exception) -> None:
        """Logs one of our own."""
        from services.common.containment import REPORT  # noqa: PLC0415 - as in `_log`

        _log().error(event, at=self.address, do=REPORT, exc_info=failure)

    def _pong(self, _pong: e.Pong) -> None:
        """It is there: the next silence counts from now."""
        if self._keepalive:
            self._silent = True
            self._keepalive.cancel()
            self._keepalive = asyncio.get_running_loop().call_later(self._doubt.quiet, self._look)

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        e.Message: _message,
        e.Headers: lambda self, event: self.headers(event),
        e.Ready: lambda self, event: self.ready(event),
        e.MoreStreams: lambda self, event: self.more_streams(event),
        e.Ended: lambda self, event: self.peer_ended(event),
        e.Reset: lambda self, event: self.was_reset(event),
        e.GoneAway: lambda self, event: self.gone_away(event),
        e.Pong: _pong,
    }

    # -------------------------------------------------------------- streams

    def begin(self, stream: Stream, listener: StreamListener) -> None:
        """From now on the listener gets what comes on the stream."""
        self._streams[stream.number] = (stream, listener)

    def over(self, number: int, reason: str) -> None:
        """Tells the listener, once, that its stream has ended."""
        self._behind.pop(number, None)
        if found := self._streams.pop(number, None):
            found[0].is_over = True
            try:
                found[1].ended(reason)
            except Exception as failure:  # noqa: BLE001 - it is logged
                self._fault("the end of a stream cannot be carried out", failure)

    def failed(self, number: int, failure: Exception) -> None:
        """Ends one stream, and nothing else, as its listener raised an error."""
        self._fault("a stream fails", failure)
        self._connection.reset(number, ErrorCode.INTERNAL_ERROR)
        self.over(number, "it could not be carried out")

    @property
    def idle(self) -> bool:
        """Whether it has no streams."""
        return not self._streams

    def _end_all(self, reason: str) -> None:
        for number in list(self._streams):
            self.over(number, reason)

    # -------------------------------------------------------------- whether the peer is alive

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        if self._silent:
            self._connection.ping()
            self._write()
            self._keepalive = loop.call_later(self._doubt.answer, self._give_up)
        else:
            self._keepalive = loop.call_later(self._doubt.quiet, self._look)
        self._silent = True

    def _give_up(self) -> None:
        """Unless its answer is here: it may not have been read yet, if this process stood still itself."""
        self._keepalive = asyncio.get_running_loop().call_later(_READ_FIRST, self._give_up_now)

    def _give_up_now(self) -> None:
        if not self._silent:
            self._look()
            return
        self.warn("the peer does not answer; its connection ends", seconds=self._doubt.answer, do=_SEE_IT)
        self._end_all("the peer does not answer")
        if self._transport:
            self._transport.abort()


def _name(code: int) -> str:
    return ErrorCode(code).name if code in ErrorCode.__members__.values() else str(code)


def _log() -> Any:  # noqa: ANN401 - as structlog says
    import structlog  # noqa: PLC0415 - a command that asks one question would load it for nothing

    return structlog.get_logger()
