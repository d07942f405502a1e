"""What the user of a connection says: requests, answers, messages, ends. The other half, `connection.py`, reads."""

from __future__ import annotations

from services.common.http2 import frames
from services.common.http2.errors import ConnectionFault, ErrorCode
from services.common.http2.events import Fields
from services.common.http2.frames import LARGEST_STREAM, PREFACE, Flag, Type
from services.common.http2.messages import ToSend
from services.common.http2.receiving import ReceiveWindow
from services.common.http2.sending import Sending
from services.common.http2.settings import OURS, Setting
from services.common.http2.stream import Stream

_MOST_ANSWERS = 1000  # waiting to be sent: a peer that asks on and reads nothing would fill our memory
_STREAM_WINDOW = OURS[Setting.INITIAL_WINDOW_SIZE]


class Writing:
    """The streams, and what is sent on them."""

    def __init__(self, *, is_client: bool, largest_message: int) -> None:
        self._is_client = is_client
        self._largest_message = largest_message
        self._sending = self.sending = Sending()
        """Whose `out` is what the socket is to write, to be looked at only."""
        self._streams: dict[int, Stream] = {}
        self._last_stream = 0  # that either end opened
        self._parting = False
        self._answers = 0  # since nothing was left to send
        if is_client:
            self._write(PREFACE)

    @property
    def unsent(self) -> int:
        """Octets of messages that wait for the peer's windows."""
        return self._sending.unsent

    def waits(self, number: int) -> bool:
        """Whether messages of a stream wait for the peer's windows."""
        return (stream := self._streams.get(number)) is not None and bool(stream.unsent)

    @property
    def may_request(self) -> bool:
        """Whether the peer takes one more stream now, and there is a number for it."""
        return len(self._streams) < self._sending.most_streams and self._last_stream + 2 <= LARGEST_STREAM

    @property
    def is_used_up(self) -> bool:
        """Whether all numbers of streams have been given (section 5.1.1)."""
        return self._last_stream + 2 > LARGEST_STREAM

    def data_to_send(self) -> list[bytes | memoryview]:
        """Takes out what the socket is to write, in order."""
        self._answers = 0
        out, self._sending.out = self._sending.out, []
        return out

    # -------------------------------------------------------------- what the user calls

    def request(self, fields: Fields) -> int:
        """Opens a stream with a request; gives its number."""
        number = self._next()
        self._sending.fields(number, fields, end=False)
        return number

    def ask(self, fields: Fields, message: bytes) -> int:
        """As `request`, with the only message of it, and its end: in one piece, where the peer takes that now."""
        number = self._next()
        stream = self._streams[number]
        if self._sending.call(number, stream, fields, message):
            stream.ended = True
        else:
            self._sending.fields(number, fields, end=False)
            self.send(number, message)
            self.end(number, [])
        return number

    def respond(self, number: int, fields: Fields) -> None:
        """Answers a request; messages may follow."""
        if number in self._streams:
            self._sending.fields(number, fields, end=False)

    def answer(self, number: int, fields: Fields, message: ToSend, trailers: Fields) -> None:
        """As `respond`, `send` and `end`, of a request that is answered whole; does nothing if the stream is over."""
        stream = self._streams.get(number)
        if stream is None or stream.ended:
            return
        if stream.peer_ended and self._sending.answer(number, stream, fields, message, trailers):
            del self._streams[number]
            return
        self.respond(number, fields)
        self.send(number, message)
        self.end(number, trailers)

    def limit(self, number: int, largest: int) -> None:
        """Limits messages on a stream to so many octets; does nothing if the stream is over."""
        if stream := self._streams.get(number):
            stream.reader.limit(largest)

    def send(self, number: int, message: ToSend) -> None:
        """Sends a message as soon as the peer's windows allow. Does nothing if the stream is over."""
        stream = self._streams.get(number)
        if stream and not stream.ended:
            self._sending.message(number, stream, message)

    def end(self, number: int, trailers: Fields) -> None:
        """Ends a stream from our side, after everything that was sent on it."""
        stream = self._streams.get(number)
        if stream and not stream.ended:
            stream.ended = True
            stream.trailers = trailers
            self._send_unsent(number, stream)

    def reset(self, number: int, code: ErrorCode) -> None:
        """Ends a stream in both directions at once; unsent messages are dropped."""
        if number in self._streams:
            self._forget(number)
            self._write(frames.rst_stream(number, code))

    def hold(self, number: int, *, held: bool) -> None:
        """While a stream is held, what comes on it is not read on beyond its window; does nothing if it is over."""
        if stream := self._streams.get(number):
            stream.receiving.hold(held=held)
            self._open(number, stream.receiving)

    def ping(self) -> None:
        """Asks the peer for a Pong."""
        self._write(frames.frame(Type.PING, 0, 0, bytes(8)))

    def go_away(self, code: ErrorCode = ErrorCode.NO_ERROR, text: str = "") -> None:
        """Tells the peer that no more streams are accepted, and why."""
        self._parting = True
        self._write(frames.goaway(0 if self._is_client else self._last_stream, code, text))

    # -------------------------------------------------------------- inside

    def _write(self, frame: bytes) -> None:
        self._sending.out.append(frame)

    def _asked(self) -> None:
        """Counts an answer to something that a peer may send without end (section 10.5)."""
        self._answers += 1
        if self._answers > _MOST_ANSWERS:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"more than {_MOST_ANSWERS} answers are not read")

    def _next(self) -> int:
        self._last_stream += 2 if self._last_stream else 1
        self._streams[self._last_stream] = self._new_stream()
        return self._last_stream

    def _new_stream(self) -> Stream:
        return Stream(self._sending.stream_window, _STREAM_WINDOW, self._largest_message)

    def _forget(self, number: int) -> None:
        self._sending.forget(self._streams.pop(number))

    def _open(self, number: int, window: ReceiveWindow) -> None:
        if more := window.increment():
            self._write(frames.window_update(number, more))

    def _send_all_unsent(self) -> None:
        if self._sending.unsent:
            for number, stream in list(self._streams.items()):
                self._send_unsent(number, stream)

    def _send_unsent(self, number: int, stream: Stream) -> None:
        self._sending.some(number, stream)
        if stream.trailers is not None and not stream.unsent:
            self._end(number, stream, stream.trailers)

    def _end(self, number: int, stream: Stream, trailers: Fields) -> None:
        stream.trailers = None
        if self._is_client:
            self._write(frames.frame(Type.DATA, Flag.END_STREAM, number))
        else:
            self._sending.fields(number, trailers, end=True)
            if not stream.peer_ended:
                # Whatever the peer still sends on it is not read (section 8.1).
                self.reset(number, ErrorCode.NO_ERROR)
        if stream.peer_ended:
            self._forget(number)
