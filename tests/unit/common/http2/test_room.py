"""The memory that the socket is read into."""

from __future__ import annotations

from random import Random

from services.common.http2.frames import FrameReader, Type
from services.common.http2.frames import frame as framed

_PAYLOADS = [bytes([number]) * size for number, size in enumerate((300_000, 20, 1 << 20, 200_000, 0, 3 << 20, 150_000))]
_STREAM = b"".join(framed(Type.DATA, 0, 1, payload) for payload in _PAYLOADS)


def _read(reader: FrameReader, most: Random | None) -> tuple[list[bytes], int]:
    """The payloads, and how many octets were read behind the end of a large frame that had come in part."""
    at, found, beyond, missing = 0, list[bytes](), 0, 0
    while at < len(_STREAM):
        room = reader.room()
        count = min(len(room), len(_STREAM) - at, most.randint(1, 400_000) if most else len(room))
        room[:count] = _STREAM[at : at + count]
        beyond += max(count - missing, 0) if missing else 0
        at += count
        found += [bytes(frame.payload) for frame in reader.feed(count)]
        missing = _missing(at)
    return found, beyond


def _missing(at: int) -> int:
    """Octets of the frame that has come in part, with its header, when so many of the stream have come."""
    for payload in _PAYLOADS:
        size = 9 + len(payload)
        if at < size:
            return size - at if at >= 9 and len(payload) > (128 << 10) else 0
        at -= size
    return 0


def test_a_large_frame_is_read_to_its_end() -> None:
    """And no further: nothing has to be moved to make room for the rest of what comes behind it."""
    payloads, beyond = _read(FrameReader(4 << 20), None)
    assert (payloads, beyond) == (_PAYLOADS, 0)


def test_whatever_the_socket_gives() -> None:
    """Frames come as they were sent, however much a read has."""
    for seed in range(20):
        payloads, beyond = _read(FrameReader(4 << 20), Random(seed))
        assert (payloads, beyond) == (_PAYLOADS, 0)
