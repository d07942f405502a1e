"""One stream as its user sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from services.common.http2.errors import ErrorCode

if TYPE_CHECKING:
    from services.common.http2.events import Fields
    from services.common.streams.endpoint import Endpoint


class StreamListener(Protocol):
    """Called from the loop, one thing at a time."""

    def received(self, message: bytes) -> None:
        """One whole message. Whatever it raises ends the stream, and nothing else."""

    def writable(self) -> None:
        """The stream was full and no longer is."""

    def ended(self, reason: str) -> None:
        """Nothing comes any more, and nothing that is written arrives; "" when both sides meant it so. Once."""


class Stream:
    """To write on. What is written in answer to what was received leaves with it, in one piece."""

    def __init__(self, endpoint: Endpoint, number: int) -> None:
        self.number = number
        self.is_over = False
        self._endpoint = endpoint

    @property
    def full(self) -> bool:
        """Whether the peer takes less than is written: wait for `writable`, what is written until then is kept."""
        return self._endpoint.full

    def write(self, message: bytes) -> None:
        """Sends a message; lost when the stream is over."""
        self._endpoint.write(self.number, message)

    def end(self, trailers: Fields) -> None:
        """Ends it from this side, after what was written."""
        self._endpoint.end(self.number, trailers)

    def fail(self, failure: Exception) -> None:
        """Ends it at once, both ways, as when its listener raises something; its listener is told."""
        self._endpoint.failed(self.number, failure)
        self._endpoint.flush()

    def reset(self, code: ErrorCode = ErrorCode.CANCEL) -> None:
        """Ends it at once, both ways; its listener is not told."""
        self._endpoint.reset(self.number, code)
