"""The quick way in for what nearly always is read: whole frames with a whole message, or with known header fields.

Frame after frame, as long as they are that: what is anything else, or a fault, is left for the way of all frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from services.common.http2.events import Ended, Event, Headers, Message
from services.common.http2.frames import HEADER, HEADER_SIZE, LARGEST_STREAM, Flag, Type

if TYPE_CHECKING:
    from services.common.http2.field_block import FieldBlocks
    from services.common.http2.receiving import ReceiveWindow
    from services.common.http2.stream import Stream

_DATA, _HEADERS = int(Type.DATA), int(Type.HEADERS)
_WHOLE: Final = (Flag.END_HEADERS, Flag.END_HEADERS | Flag.END_STREAM)
_new = tuple.__new__  # an event's own is one more call, for each of them


class UsualFrames:
    """Takes them from what was just read, for a connection whose parts these are."""

    def __init__(
        self,
        streams: dict[int, Stream],
        receiving: ReceiveWindow,
        blocks: FieldBlocks,
        opened: Callable[[int], Stream | None],
        peer_ended: Callable[[int, Stream], None],
        *,
        is_client: bool,
        largest: int,
    ) -> None:
        """`largest`: octets of a frame; `opened` and `peer_ended`: what happens when a request and an end come."""
        self._streams = streams
        self._receiving = receiving
        self._blocks = blocks
        self._opened = opened
        self._peer_ended = peer_ended
        self._is_client = is_client
        self._largest = largest

    def take(self, octets: memoryview, events: list[Event]) -> int:
        """Adds what they say to `events`; gives how many octets were taken. Raises as a request's `opened` does."""
        at, count = 0, len(octets)
        while at + HEADER_SIZE <= count:
            high, low, kind, flags, number = HEADER.unpack_from(octets, at)
            begin = at + HEADER_SIZE
            end = begin + (high << 8 | low)
            if end > count or end - begin > self._largest:
                break
            if kind == _DATA:
                taken = flags <= Flag.END_STREAM and self._message(number, octets[begin:end], flags, events)
            else:
                taken = kind == _HEADERS and flags in _WHOLE and self._fields(number, octets[begin:end], flags, events)
            if not taken:
                break
            at = end
        return at

    def _message(self, number: int, payload: memoryview, flags: int, events: list[Event]) -> bool:
        """A frame that is one message, behind which no window has to be opened again."""
        stream, all_streams, size = self._streams.get(number), self._receiving, len(payload)
        if stream is None or stream.peer_ended:
            return False
        its = stream.receiving
        if its.left - size < its.half or all_streams.left - size < all_streams.half:
            return False
        message = stream.reader.sole(payload)
        if message is None:
            return False
        all_streams.left -= size
        its.left -= size
        events.append(_new(Message, (number, message)))
        if flags:
            events.append(_new(Ended, (number,)))
            self._peer_ended(number, stream)
        return True

    def _fields(self, number: int, block: memoryview, flags: int, events: list[Event]) -> bool:
        fields = self._blocks.known(bytes(block))
        if fields is None or number > LARGEST_STREAM:
            return False
        stream, ended = self._streams.get(number), flags != Flag.END_HEADERS
        if stream is None:
            stream = self._opened(number)
            if stream is None:
                return True
        elif stream.peer_ended or not (ended or self._is_client):
            return False
        events.append(_new(Headers, (number, list(fields), ended)))
        if ended:
            self._peer_ended(number, stream)
        return True
