"""Frames: nine octets with length, type, flags and stream, then a payload (RFC 9113 sections 4 and 6)."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from services.common.http2.errors import ConnectionFault, ErrorCode

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_SIZE = 9
LARGEST_STREAM = (1 << 31) - 1
_ROOM = 512 << 10  # octets that are read at once; more after a larger frame
_FIRST_ROOM = 8 << 10  # until a peer sends more: any process may connect, and say nothing
_LARGE = 128 << 10  # octets of a frame
_LARGEST_OTHER = 256 << 10  # octets of a frame that carries no message
_MOST_SETTINGS = 100  # in a frame; half a dozen are known, and each may change the windows of all streams

HEADER = struct.Struct(">HBBBL")  # length as 16 + 8 bits, type, flags, stream
_LONG = struct.Struct(">L")
_SETTING = struct.Struct(">HL")


class Type(enum.IntEnum):
    """Section 6. Frames of other types are ignored (section 5.5)."""

    DATA = 0x0
    HEADERS = 0x1
    PRIORITY = 0x2
    RST_STREAM = 0x3
    SETTINGS = 0x4
    PUSH_PROMISE = 0x5
    PING = 0x6
    GOAWAY = 0x7
    WINDOW_UPDATE = 0x8
    CONTINUATION = 0x9


class Flag:
    """A flag's meaning depends on the frame's type. Plain numbers: the flags of each frame are read several times."""

    ACK: Final = 0x1  # SETTINGS, PING
    END_STREAM: Final = 0x1  # DATA, HEADERS
    END_HEADERS: Final = 0x4
    PADDED: Final = 0x8
    PRIORITY: Final = 0x20


class Frame(NamedTuple):
    """As received; `type` may be an unknown one. The payload of DATA is lent until the next frame is read."""

    type: int
    flags: int
    stream: int
    payload: bytes | memoryview


class FrameReader:
    """Cuts received octets into frames. Owns the memory that the socket is read into, so that nothing is copied."""

    def __init__(self, largest: int) -> None:
        """`largest` is the SETTINGS_MAX_FRAME_SIZE that the peer was sent, in octets."""
        self._largest = largest
        self._buffer = bytearray(_FIRST_ROOM)
        self._filled = False  # by the last read: there is more
        self._begin = self._end = 0  # of the octets not yet taken

    @property
    def held(self) -> int:
        """Octets of the memory."""
        return len(self._buffer)

    def room(self) -> memoryview:
        """The buffer for the next octets; never empty."""
        if not self._end and not self._filled:
            return memoryview(self._buffer)  # nearly always: what was read was whole frames
        size = self._end - self._begin
        wanted = self._wanted(size)
        if self._filled and len(self._buffer) < _ROOM:
            self._grow(size, _ROOM)
        if self._begin + wanted > len(self._buffer):
            if size == len(self._buffer):  # a peer may announce much and send nothing: it grows with what came
                self._grow(size, min(2 * size, 2 * wanted))
            elif self._begin:
                self._buffer[:size] = self._buffer[self._begin : self._end]
                self._begin, self._end = 0, size
        # Of a large frame no more than its rest: what is read behind it would have to be moved to make room.
        end = self._begin + wanted if wanted > _LARGE else len(self._buffer)
        return memoryview(self._buffer)[self._end : end]

    def _grow(self, size: int, room: int) -> None:
        rest = self._buffer[self._begin : self._end]
        self._buffer = bytearray(room)
        self._buffer[:size] = rest
        self._begin, self._end = 0, size

    def _wanted(self, size: int) -> int:
        if size < HEADER_SIZE:
            return HEADER_SIZE
        high: int
        low: int
        high, low, *_ = HEADER.unpack_from(self._buffer, self._begin)
        return HEADER_SIZE + (high << 8 | low)

    def skip(self, count: int) -> bytes:
        """Takes out the first of the octets just read, which belong to no frame."""
        skipped = bytes(self._buffer[self._begin : self._begin + count])
        self._begin += count
        self._end += count
        return skipped

    def just_read(self, count: int) -> memoryview | None:
        """The `count` octets just read, where none wait before them and there was room for more; else `feed` them."""
        if self._end or count >= len(self._buffer):
            return None
        self._filled = False
        return memoryview(self._buffer)[:count]

    def feed(self, count: int) -> Iterator[Frame]:
        """The frames that `count` more octets complete. Raises ConnectionFault (FRAME_SIZE_ERROR, 4.2)."""
        self._end += count
        self._filled = self._end == len(self._buffer)
        buffer, view = self._buffer, memoryview(self._buffer)
        while self._end - self._begin >= HEADER_SIZE:
            begin = self._begin + HEADER_SIZE
            high, low, kind, flags, stream = HEADER.unpack_from(buffer, self._begin)
            length = high << 8 | low
            if length > (self._largest if kind == Type.DATA else _LARGEST_OTHER):
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length} octets is too large")
            if begin + length > self._end:
                return
            payload = view[begin : begin + length]
            self._begin = begin + length
            yield Frame(kind, flags, stream & LARGEST_STREAM, payload if kind == Type.DATA else bytes(payload))
        if self._begin == self._end:
            self._begin = self._end = 0


def header(kind: int, flags: int, stream: int, length: int) -> bytes:
    """The header of a frame with a payload of so many octets."""
    return HEADER.pack(length >> 8, length & 0xFF, kind, flags, stream)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A whole frame."""
    return header(kind, flags, stream, len(payload)) + payload


def settings(values: dict[int, int]) -> bytes:
    """A SETTINGS frame (section 6.5)."""
    return frame(Type.SETTINGS, 0, 0, b"".join(_SETTING.pack(*each) for each in values.items()))


def read_settings(payload: bytes | memoryview) -> Iterator[tuple[int, int]]:
    """Identifiers and values. Raises ConnectionFault (FRAME_SIZE_ERROR; ENHANCE_YOUR_CALM, section 10.5)."""
    if len(payload) % _SETTING.size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS that are cut off")
    if len(payload) > _MOST_SETTINGS * _SETTING.size:
        raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"more than {_MOST_SETTINGS} settings in a frame")
    return _SETTING.iter_unpack(payload)


def window_update(stream: int, increment: int) -> bytes:
    """A WINDOW_UPDATE frame (section 6.9); stream 0 stands for the connection."""
    return frame(Type.WINDOW_UPDATE, 0, stream, _LONG.pack(increment))


def rst_stream(stream: int, code: ErrorCode) -> bytes:
    """A RST_STREAM frame (section 6.4)."""
    return frame(Type.RST_STREAM, 0, stream, _LONG.pack(code))


def goaway(last_stream: int, code: ErrorCode, text: str = "") -> bytes:
    """A GOAWAY frame (section 6.8)."""
    return frame(Type.GOAWAY, 0, 0, _LONG.pack(last_stream) + _LONG.pack(code) + text.encode()[:1024])


def read_long(payload: bytes | memoryview, at: int = 0) -> int:
    """An unsigned number of 32 bits."""
    return int.from_bytes(payload[at : at + 4], "big")


def unpadded(frame: Frame) -> bytes | memoryview:
    """The payload without padding (section 6.1). Raises ConnectionFault (PROTOCOL_ERROR; FRAME_SIZE_ERROR, 4.2)."""
    payload = frame.payload
    if not frame.flags & Flag.PADDED:
        return payload
    if not payload:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "padding of no length")
    if payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "padding that is longer than its frame")
    return payload[1 : len(payload) - payload[0]]


def require(frame: Frame, size: int) -> None:
    """Raises ConnectionFault unless the payload has so many octets."""
    if len(frame.payload) != size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"{Type(frame.type).name} of {len(frame.payload)} octets")


def of_no_stream(frame: Frame) -> None:
    """Raises ConnectionFault for a frame of the whole connection that names a stream."""
    if frame.stream:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{Type(frame.type).name} of a stream")
