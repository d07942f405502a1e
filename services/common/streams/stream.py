"""One stream as its user sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from services.common.http2.errors import ErrorCode
from services.common.http2.messages import ToSend

if TYPE_CHECKING:
    from services.common.http2.events import Fields
    from services.common.streams.endpoint import Endpoint


class StreamListener(Protocol):
    """Called from the event loop, one call at a time."""

    def received(self, message: bytes) -> None:
        """One whole message. An error raised here ends this stream, and nothing else."""

    def writable(self) -> None:
        """The stream was full and no longer is."""

    def ended(self, reason: str) -> None:
        """Nothing more comes, and nothing that is written arrives; "" for a regular end. Called once."""


class Stream:
    """The writing side. What is written while a message is being handled leaves in one piece."""

    def __init__(self, endpoint: Endpoint, number: int) -> None:
        self.number = number
        self.is_over = False
        self._endpoint = endpoint

    @property
    def full(self) -> bool:
        """Whether the peer takes less than was written: wait for `writable`; what is written until then is kept."""
        return self._endpoint.full

    @property
    def waits(self) -> bool:
        """As `full`, of this stream alone: whether something written on it waits for the socket or the peer."""
        return self._endpoint.waits(self.number)

    def hold(self, *, held: bool) -> None:
        """While it is held the peer sends what the stream's window has left, and no more."""
        self._endpoint.hold(self.number, held=held)

    def gather(self) -> None:
        """What is written until the end of the turn, on any stream of the connection, leaves in one piece."""
        self._endpoint.gather()

    def write(self, message: ToSend) -> None:
        """Sends a message, whole or in parts; a stream that has ended drops it."""
        self._endpoint.write(self.number, message)

    def finish(self, message: ToSend, trailers: Fields) -> None:
        """Sends a last message and ends the stream from this side, all of it in one piece."""
        self._endpoint.finish(self.number, message, trailers)

    def end(self, trailers: Fields) -> None:
        """Ends the stream from this side, after what was written."""
        self._endpoint.end(self.number, trailers)

    def fail(self, failure: Exception) -> None:
        """Ends the stream at once, both ways, as when its listener raises an error; the listener is told."""
        self._endpoint.failed(self.number, failure)
        self._endpoint.flush()

    def reset(self, code: ErrorCode = ErrorCode.CANCEL) -> None:
        """Ends the stream at once, both ways; the listener is not told."""
        self._endpoint.reset(self.number, code)
