"""The sending half of a connection: what is to be written, and the peer's windows (RFC 9113 section 5.2)."""

from __future__ import annotations

from hpack import Encoder

from services.common.http2 import frames
from services.common.http2.errors import ConnectionFault, ErrorCode
from services.common.http2.events import Fields
from services.common.http2.frames import Flag, Type
from services.common.http2.messages import PREFIX_SIZE, prefix
from services.common.http2.settings import LARGEST_WINDOW, Setting, initial
from services.common.http2.stream import Stream

_LARGEST_TABLE = initial()[Setting.HEADER_TABLE_SIZE]  # of ours, however much the peer would keep


class Sending:
    """Frames in order; messages that the windows do not allow yet stay with their streams."""

    def __init__(self) -> None:
        self.out: list[bytes | memoryview] = []
        self.unsent = 0  # octets of messages that wait
        self._encoder = Encoder()
        self._table_sizes: tuple[int, ...] = ()  # since header fields were sent: the smallest, and what holds now
        self._theirs = initial()
        self._window = self.stream_window

    @property
    def stream_window(self) -> int:
        """What may be sent on a new stream."""
        return self._theirs[Setting.INITIAL_WINDOW_SIZE]

    def take(self) -> list[bytes | memoryview]:
        """Takes out what is to be written."""
        out, self.out = self.out, []
        return out

    def message(self, number: int, stream: Stream, message: bytes) -> None:
        """At once and in one frame, if it may: then it is not copied."""
        size = PREFIX_SIZE + len(message)
        fits = size <= self._theirs[Setting.MAX_FRAME_SIZE] and size <= stream.window and size <= self._window
        if fits and not stream.unsent:
            self.out += (frames.header(Type.DATA, 0, number, size) + prefix(message), message)
            stream.window -= size
            self._window -= size
            return
        stream.unsent.append(memoryview(prefix(message)))
        if message:  # nothing of an empty one is left to wait when its prefix has gone
            stream.unsent.append(memoryview(message))
        self.unsent += size
        self.some(number, stream)

    def some(self, number: int, stream: Stream) -> None:
        """As much of what waits as is allowed."""
        unsent = stream.unsent
        while unsent and (room := min(stream.window, self._window, self._theirs[Setting.MAX_FRAME_SIZE])) > 0:
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
        """What waits on a stream that is over."""
        self.unsent -= sum(map(len, stream.unsent))
        stream.unsent.clear()

    def fields(self, number: int, fields: Fields, *, end: bool) -> None:
        """Header fields, in as many frames as they take (section 6.10)."""
        self._resize_table()
        block = self._encoder.encode(fields)
        size = self._theirs[Setting.MAX_FRAME_SIZE]
        parts = [block[at : at + size] for at in range(0, len(block) or 1, size)]
        for index, part in enumerate(parts):
            flags = Flag.END_HEADERS if index == len(parts) - 1 else 0
            if index:
                self.out.append(frames.frame(Type.CONTINUATION, flags, number, part))
            else:
                self.out.append(frames.frame(Type.HEADERS, flags | (Flag.END_STREAM if end else 0), number, part))

    def _resize_table(self) -> None:
        """The peer is told both sizes (RFC 7541 section 4.2); hpack forgets a change when it hears of it twice."""
        for size in self._table_sizes:
            if size != self._encoder.header_table_size:
                self._encoder.header_table_size = size
        self._table_sizes = ()

    def grow(self, increment: int) -> bool:
        """The peer takes more on the whole connection; False when its window would be too large."""
        self._window += increment
        return self._window <= LARGEST_WINDOW

    def apply(self, identifier: int, value: int, streams: dict[int, Stream]) -> None:
        """A setting of the peer's. Raises ConnectionFault when a window becomes too large (section 6.9.2)."""
        if identifier == Setting.HEADER_TABLE_SIZE:
            size = min(value, _LARGEST_TABLE)
            self._table_sizes = (min(size, *self._table_sizes, _LARGEST_TABLE), size)
        elif identifier == Setting.INITIAL_WINDOW_SIZE:
            for stream in streams.values():
                stream.window += value - self.stream_window
                if stream.window > LARGEST_WINDOW:
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, f"a window cannot be {stream.window}")
        self._theirs[identifier] = value
