"""Messages of a stream that wait to be read: when they are many, the stream is held until they are fewer."""

from __future__ import annotations

from collections import deque
from typing import Final

from services.common.streams.stream import Stream

_MUCH: Final = 4 << 20  # octets
_MANY: Final = 1000  # messages
_EACH: Final = _MUCH // _MANY
"""Octets that a message counts at least, so that many small ones are much."""


class Unread:
    """First come, first taken."""

    __slots__ = ("_held", "_size", "_stream", "messages")

    def __init__(self, stream: Stream | None = None) -> None:
        """`stream` may be given later, by `of`."""
        self._stream = stream
        self.messages: deque[bytes] = deque()
        """To be looked at only."""
        self._size = 0
        self._held = False

    def __len__(self) -> int:
        return len(self.messages)

    def of(self, stream: Stream) -> None:
        """They come by this stream."""
        self._stream = stream

    def add(self, message: bytes) -> None:
        """One has come."""
        self.messages.append(message)
        self._size += len(message) + _EACH
        if self._size > _MUCH and not self._held:
            self._hold(held=True)

    def first(self) -> bytes:
        """The first one, which stays."""
        return self.messages[0]

    def take(self) -> bytes:
        """The first one."""
        message = self.messages.popleft()
        self._size -= len(message) + _EACH
        if self._held and self._size <= _MUCH // 2:
            self._hold(held=False)
        return message

    def _hold(self, *, held: bool) -> None:
        self._held = held
        if self._stream:
            self._stream.hold(held=held)
