"""The sending half of a connection: frames to be written, and the peer's windows (RFC 9113 section 5.2)."""

from __future__ import annotations

import struct

from hpack import Encoder, NeverIndexedHeaderTuple

from services.common.http2 import frames
from services.common.http2.errors import ConnectionFault, ErrorCode
from services.common.http2.events import Fields
from services.common.http2.frames import Flag, Type
from services.common.http2.known import keep
from services.common.http2.messages import PREFIX_SIZE, ToSend, prefix
from services.common.http2.settings import LARGEST_WINDOW, Setting, initial
from services.common.http2.stream import Stream

_LARGEST_TABLE = initial()[Setting.HEADER_TABLE_SIZE]  # our limit, even if the peer allows more

_HEAD = struct.Struct(">HBBBLBL")  # a frame's header, and the prefix of the message that is in it
_SHORT = initial()[Setting.MAX_FRAME_SIZE]  # octets that any peer takes in a frame
_known: dict[tuple[tuple[str, str], ...], bytes] = {}


class Sending:
    """Frames in order; messages that the windows do not allow yet wait with their streams."""

    def __init__(self) -> None:
        self.out: list[bytes | memoryview] = []
        """Frames to be written, for who takes them out."""
        self.unsent = 0  # octets of messages that wait
        self._encoder = Encoder()
        self._table_sizes: tuple[int, ...] = ()  # since the last header fields: the smallest, and the present one
        first = initial()
        self.stream_window = first[Setting.INITIAL_WINDOW_SIZE]
        """The octets that may be sent on a new stream."""
        self.most_streams = first[Setting.MAX_CONCURRENT_STREAMS]
        """How many streams the peer lets be open at a time."""
        self._largest_frame = first[Setting.MAX_FRAME_SIZE]
        self._window = self.stream_window

    def message(self, number: int, stream: Stream, message: ToSend) -> None:
        """Sends a message at once and in one frame if it fits, uncopied; else it waits with the stream."""
        parts = (message,) if isinstance(message, bytes) else message
        length = len(message) if isinstance(message, bytes) else sum(map(len, parts))
        size = PREFIX_SIZE + length
        fits = size <= self._largest_frame and size <= stream.window and size <= self._window
        if fits and not stream.unsent:
            self.out += (_head(number, length), *parts)
            stream.window -= size
            self._window -= size
            return
        stream.unsent.append(memoryview(prefix(length)))
        stream.unsent.extend(memoryview(part) for part in parts if part)  # of an empty one only the prefix has to wait
        self.unsent += size
        self.some(number, stream)

    def some(self, number: int, stream: Stream) -> None:
        """Sends as much of what waits as the windows allow."""
        unsent = stream.unsent
        while unsent and (room := min(stream.window, self._window, self._largest_frame)) > 0:
            part = unsent.popleft()
            if len(part) > room:
                unsent.appendleft(part[room:])
                part = part[:room]
            size = len(part)
            self.out += (frames.header(Type.DATA, 0, number, size), part)
            stream.window -= size
            self._window -= size
            self.unsent -= size

    def forget(self, stream: Stream) -> None:
        """Drops what waits on a stream that is over."""
        self.unsent -= sum(map(len, stream.unsent))
        stream.unsent.clear()

    def call(self, number: int, stream: Stream, fields: Fields, message: bytes) -> bool:
        """Sends a whole request and the end of its stream; False where it does not fit, and nothing is sent."""
        if not self._fits(stream, block := self._encoded(fields), size := PREFIX_SIZE + len(message)):
            return False
        start = frames.header(Type.HEADERS, Flag.END_HEADERS, number, len(block)) + block
        self.out += (start + _head(number, len(message), Flag.END_STREAM), message)
        stream.window -= size
        self._window -= size
        return True

    def answer(self, number: int, stream: Stream, fields: Fields, message: ToSend, trailers: Fields) -> bool:
        """The same of a whole answer, to a request whose end has come."""
        if not isinstance(message, bytes):
            return False
        last, size = self._encoded(trailers), PREFIX_SIZE + len(message)
        if not self._fits(stream, block := self._encoded(fields), size) or len(last) > _SHORT:
            return False
        start = frames.header(Type.HEADERS, Flag.END_HEADERS, number, len(block)) + block
        end = frames.header(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, number, len(last)) + last
        self.out += (start + _head(number, len(message)), message, end)
        self._window -= size
        return True

    def _fits(self, stream: Stream, block: bytes, size: int) -> bool:
        """Whether header fields and a message behind them go out now, in a frame each."""
        if self._table_sizes or stream.unsent or len(block) > _SHORT:
            return False
        return size <= self._largest_frame and size <= stream.window and size <= self._window

    def fields(self, number: int, fields: Fields, *, end: bool) -> None:
        """Sends header fields, in as many frames as they take (section 6.10)."""
        block = self._resized() + self._encoded(fields)
        size = self._largest_frame
        parts = [block[at : at + size] for at in range(0, len(block) or 1, size)]
        for index, part in enumerate(parts):
            flags = Flag.END_HEADERS if index == len(parts) - 1 else 0
            if index:
                self.out.append(frames.frame(Type.CONTINUATION, flags, number, part))
            else:
                self.out.append(frames.frame(Type.HEADERS, flags | (Flag.END_STREAM if end else 0), number, part))

    def _encoded(self, fields: Fields) -> bytes:
        """Nothing is put into the table, so that the same fields are the same octets, and are known at both ends."""
        key = tuple(fields)
        if (known := _known.get(key)) is None:
            known = self._encoder.encode([NeverIndexedHeaderTuple(*field) for field in fields], huffman=False)
            keep(_known, key, known)
        return known

    def _resized(self) -> bytes:
        """Tells the peer both sizes (RFC 7541 section 4.2); hpack loses a change when the same size is set twice."""
        if not self._table_sizes:
            return b""
        for size in self._table_sizes:
            if size != self._encoder.header_table_size:
                self._encoder.header_table_size = size
        self._table_sizes = ()
        return bytes(self._encoder.encode([]))

    def grow(self, increment: int) -> bool:
        """The peer accepts more on the whole connection; False when its window would be too large."""
        self._window += increment
        return self._window <= LARGEST_WINDOW

    def apply(self, identifier: int, value: int, streams: dict[int, Stream]) -> None:
        """Applies a setting of the peer. Raises ConnectionFault when a window becomes too large (section 6.9.2)."""
        if identifier == Setting.HEADER_TABLE_SIZE:
            size = min(value, _LARGEST_TABLE)
            self._table_sizes = (min(size, *self._table_sizes, _LARGEST_TABLE), size)
        elif identifier == Setting.INITIAL_WINDOW_SIZE:
            for stream in streams.values():
                stream.window += value - self.stream_window
                if stream.window > LARGEST_WINDOW:
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, f"a window cannot be {stream.window}")
            self.stream_window = value
        elif identifier == Setting.MAX_CONCURRENT_STREAMS:
            self.most_streams = value
        elif identifier == Setting.MAX_FRAME_SIZE:
            self._largest_frame = value


def _head(number: int, length: int, flags: int = 0) -> bytes:
    """All that is before the octets of a message which is sent whole, in a frame of its own."""
    size = PREFIX_SIZE + length
    return _HEAD.pack(size >> 8, size & 0xFF, Type.DATA, flags, number, 0, length)
