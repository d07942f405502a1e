"""One end of an HTTP/2 connection that carries gRPC's messages (RFC 9113, and gRPC's PROTOCOL-HTTP2.md).

Sans-IO: the socket is read into `room`, `received` gives the events, `data_to_send` what the socket is to write. It is
made for few streams that live long and carry many messages: a message costs a header of 14 octets, no copy on its way
out, and one on its way in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from services.common.http2 import events as e
from services.common.http2 import frames
from services.common.http2.errors import ConnectionFault, ErrorCode, StreamFault
from services.common.http2.events import Event
from services.common.http2.field_block import Block, FieldBlocks
from services.common.http2.frames import LARGEST_STREAM, PREFACE, Flag, Frame, FrameReader, Type
from services.common.http2.messages import MessageFault
from services.common.http2.receiving import ReceiveWindow
from services.common.http2.settings import CONNECTION_WINDOW, LARGEST_WINDOW, OURS, Setting, check, initial
from services.common.http2.stream import Stream
from services.common.http2.usual import UsualFrames
from services.common.http2.writing import Writing

_FIRST_WINDOW = initial()[Setting.INITIAL_WINDOW_SIZE]


class Http2Connection(Writing):
    """`is_client` opens streams, the other end answers them."""

    def __init__(self, *, is_client: bool, largest_message: int) -> None:
        """`largest_message` is the largest accepted, in octets."""
        super().__init__(is_client=is_client, largest_message=largest_message)
        self._preface = b"" if is_client else PREFACE  # the part that has not come yet
        self._reader = FrameReader(OURS[Setting.MAX_FRAME_SIZE])
        self._blocks = FieldBlocks()
        self._ready = False
        self._receiving = ReceiveWindow(CONNECTION_WINDOW)
        self._usual = UsualFrames(
            self._streams,
            self._receiving,
            self._blocks,
            self._opened,
            self._peer_ended,
            is_client=is_client,
            largest=OURS[Setting.MAX_FRAME_SIZE],
        )
        self._events: list[Event] = []
        self._write(frames.settings({int(setting): value for setting, value in OURS.items()}))
        self._write(frames.window_update(0, CONNECTION_WINDOW - _FIRST_WINDOW))

    @property
    def held(self) -> int:
        """Octets taken for what comes, whole or not."""
        return self._reader.held + self._blocks.held

    # -------------------------------------------------------------- what the peer sends

    def room(self) -> memoryview:
        """The buffer to read the socket into."""
        return self._reader.room()

    def received(self, count: int) -> list[Event]:
        """The events from `count` octets that were read into `room`.

        Raises ConnectionFault when the connection is over; `data_to_send` then tells the peer why.
        """
        events = self._events = []
        if not self._sending.out:
            self._answers = 0
        try:
            if self._preface:
                count -= self._skip_preface(count)
            elif taken := self._take_usual(count):
                if taken == count:
                    return events
                self._reader.skip(taken)
                count -= taken
            for frame in self._reader.feed(count):
                self._take(frame)
        except ConnectionFault as fault:
            self.go_away(fault.code, fault.text)
            raise
        finally:
            self._events = []  # messages may be large: nobody keeps them here
        return events

    def _take_usual(self, count: int) -> int:
        if not self._ready or self._blocks.stream is not None or (octets := self._reader.just_read(count)) is None:
            return 0
        return self._usual.take(octets, self._events)

    def _skip_preface(self, count: int) -> int:
        size = min(count, len(self._preface))
        if self._reader.skip(size) != self._preface[:size]:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "this port speaks gRPC over HTTP/2 without TLS")
        self._preface = self._preface[size:]
        return size

    def _take(self, frame: Frame) -> None:
        if self._blocks.stream is not None or not self._ready:
            self._check_order(frame)
        handler = self._HANDLERS.get(frame.type)
        if handler is None:
            return
        try:
            handler(self, frame)
        except StreamFault as fault:
            self._asked()
            self.reset(fault.stream, fault.code)
            self._events.append(e.Reset(fault.stream, fault.code, fault.text))

    def _check_order(self, frame: Frame) -> None:
        if not self._ready and (frame.type != Type.SETTINGS or frame.flags & Flag.ACK):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the first frame must be SETTINGS")
        wanted = self._blocks.stream
        if wanted is not None and (frame.type != Type.CONTINUATION or frame.stream != wanted):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "header fields that are not continued")

    def _data(self, frame: Frame) -> None:
        self._received(frame)
        stream = self._stream(frame)
        if stream is None:
            return
        if stream.peer_ended:
            raise StreamFault(frame.stream, ErrorCode.STREAM_CLOSED, "data after the end of the stream")
        self._received_on(frame, stream)
        payload = frames.unpadded(frame) if frame.flags else frame.payload
        try:
            for message in stream.reader.feed(payload):
                self._events.append(e.Message(frame.stream, message))
        except MessageFault as fault:
            raise StreamFault(frame.stream, fault.code, fault.text) from None
        if frame.flags & Flag.END_STREAM:
            if not stream.reader.is_between_messages:
                raise StreamFault(frame.stream, ErrorCode.PROTOCOL_ERROR, "a message that is cut off")
            self._events.append(e.Ended(frame.stream))
            self._peer_ended(frame.stream, stream)

    def _headers(self, frame: Frame) -> None:
        payload = frames.unpadded(frame)
        if frame.flags & Flag.PRIORITY:
            if len(payload) < 5:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS that are cut off")
            payload = payload[5:]
        self._blocks.begin(frame.stream, ended=bool(frame.flags & Flag.END_STREAM))
        self._fields(self._blocks.add(payload, frame.flags))

    def _continuation(self, frame: Frame) -> None:
        self._fields(self._blocks.add(frame.payload, frame.flags))

    def _fields(self, block: Block | None) -> None:
        if block is None:
            return
        number, fields, ended = block
        were_some = number in self._streams  # a server's streams begin with header fields
        stream = self._streams.get(number) or self._opened(number)
        if stream is None:
            return
        if stream.peer_ended:
            raise StreamFault(number, ErrorCode.STREAM_CLOSED, "header fields after the end of the stream")
        if were_some and not ended and not self._is_client:
            raise StreamFault(number, ErrorCode.PROTOCOL_ERROR, "trailers that do not end the stream")
        self._events.append(e.Headers(number, fields, ended))
        if ended:
            self._peer_ended(number, stream)

    def _opened(self, number: int) -> Stream | None:
        """The stream that a request opens; None for an answer on a stream that was reset before (section 5.1)."""
        if number <= self._last_stream and number % 2:
            return None
        if self._is_client or not number % 2:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"header fields of stream {number}, which is not open")
        self._last_stream = number
        self._asked()
        if self._parting or len(self._streams) >= OURS[Setting.MAX_CONCURRENT_STREAMS]:
            self._write(frames.rst_stream(number, ErrorCode.REFUSED_STREAM))
            return None
        stream = self._streams[number] = self._new_stream()
        return stream

    def _priority(self, frame: Frame) -> None:
        """Ignores the priority, but the frame must be valid (section 6.3)."""
        if not frame.stream:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY of no stream")
        if len(frame.payload) != 5 and frame.stream in self._streams:
            raise StreamFault(frame.stream, ErrorCode.FRAME_SIZE_ERROR, f"PRIORITY of {len(frame.payload)} octets")

    def _rst_stream(self, frame: Frame) -> None:
        frames.require(frame, 4)
        if self._stream(frame):
            self._forget(frame.stream)
            self._events.append(e.Reset(frame.stream, frames.read_long(frame.payload), ""))

    def _settings(self, frame: Frame) -> None:
        frames.of_no_stream(frame)
        if frame.flags & Flag.ACK:
            frames.require(frame, 0)
            return
        most = self._sending.most_streams
        for identifier, value in frames.read_settings(frame.payload):
            if check(identifier, value, of_server=self._is_client):
                self._sending.apply(identifier, value, self._streams)
        self._asked()
        self._write(frames.frame(Type.SETTINGS, Flag.ACK, 0))
        if not self._ready:
            self._ready = True
            self._events.append(e.Ready())
        elif self._sending.most_streams > most:
            self._events.append(e.MoreStreams())
        self._send_all_unsent()

    def _push_promise(self, _frame: Frame) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a push, which nobody may send")

    def _ping(self, frame: Frame) -> None:
        frames.of_no_stream(frame)
        frames.require(frame, 8)
        if frame.flags & Flag.ACK:
            self._events.append(e.Pong())
        else:
            self._asked()
            self._write(frames.frame(Type.PING, Flag.ACK, 0, bytes(frame.payload)))

    def _goaway(self, frame: Frame) -> None:
        frames.of_no_stream(frame)
        if len(frame.payload) < 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a GOAWAY that is cut off")
        last, code = frames.read_long(frame.payload) & LARGEST_STREAM, frames.read_long(frame.payload, 4)
        text = bytes(frame.payload[8:]).decode(errors="replace")
        if self._is_client:
            for number in [number for number in self._streams if number > last]:
                self._forget(number)
                self._events.append(e.Reset(number, ErrorCode.REFUSED_STREAM, text))
        self._events.append(e.GoneAway(last, code, text))

    def _window_update(self, frame: Frame) -> None:
        frames.require(frame, 4)
        increment = frames.read_long(frame.payload) & LARGEST_WINDOW
        code = ErrorCode.FLOW_CONTROL_ERROR if increment else ErrorCode.PROTOCOL_ERROR
        text = f"a window cannot grow by {increment}"
        if not frame.stream:
            if not self._sending.grow(increment) or not increment:
                raise ConnectionFault(code, text)
            self._send_all_unsent()
        elif stream := self._stream(frame):
            stream.window += increment
            if not increment or stream.window > LARGEST_WINDOW:
                raise StreamFault(frame.stream, code, text)
            self._send_unsent(frame.stream, stream)

    _HANDLERS: ClassVar[dict[int, Callable[[Any, Frame], None]]] = {
        Type.DATA: _data,
        Type.HEADERS: _headers,
        Type.PRIORITY: _priority,
        Type.RST_STREAM: _rst_stream,
        Type.SETTINGS: _settings,
        Type.PUSH_PROMISE: _push_promise,
        Type.PING: _ping,
        Type.GOAWAY: _goaway,
        Type.WINDOW_UPDATE: _window_update,
        Type.CONTINUATION: _continuation,
    }

    # -------------------------------------------------------------- streams

    def _stream(self, frame: Frame) -> Stream | None:
        """None for a stream that is over: the peer sent the frame before it knew (section 5.1, "closed")."""
        stream = self._streams.get(frame.stream)
        if stream is None and (frame.stream > self._last_stream or not frame.stream % 2):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"a frame of stream {frame.stream}, which is not open")
        return stream

    def _peer_ended(self, number: int, stream: Stream) -> None:
        stream.peer_ended = True
        if stream.ended and not stream.unsent:
            self._forget(number)

    # -------------------------------------------------------------- flow control (section 5.2)

    def _received(self, frame: Frame) -> None:
        if not self._receiving.take(len(frame.payload)):
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "more data than the connection's window")
        self._open(0, self._receiving)

    def _received_on(self, frame: Frame, stream: Stream) -> None:
        if not stream.receiving.take(len(frame.payload)):
            raise StreamFault(frame.stream, ErrorCode.FLOW_CONTROL_ERROR, "more data than the stream's window")
        self._open(frame.stream, stream.receiving)
