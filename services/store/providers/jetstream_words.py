"""A failure of NATS in words for people, and whether another attempt may succeed."""

from __future__ import annotations

import ssl

import nats.errors
from nats.errors import AuthorizationError, ConnectionClosedError
from nats.js.errors import APIError, NoStreamResponseError, ServiceUnavailableError

ENDED = "the connection has ended"
_REFUSED = "it refuses these credentials"
_FULL = (10002, 10023, 10047, 10077)  # an account, a server, its disk, a stream
_MORE = "give the stream (max_bytes), its account or the servers' disks more room; the store goes on by itself"
_NO_PEERS = 10005  # too few servers for the replicas; there may be enough in a moment, while servers start
_PASSING = (ServiceUnavailableError, NoStreamResponseError, nats.errors.TimeoutError)
_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (AuthorizationError, _REFUSED),
    (ConnectionRefusedError, "connection refused: does it run?"),
    (ServiceUnavailableError, "JetStream does not answer: is it on, and do most of its servers run?"),
    (NoStreamResponseError, "the stream does not answer: do most of its servers run?"),
    (TimeoutError, "no answer in time: do most of its servers run?"),
    (ConnectionClosedError, ENDED),
)


def full(failure: BaseException) -> bool:
    """Whether the cause is a lack of room."""
    return getattr(failure, "err_code", 0) in _FULL


def gone(failure: BaseException) -> bool:
    """Whether no server is there."""
    return isinstance(failure, (OSError, ConnectionClosedError)) and not isinstance(failure, ssl.SSLError)


def passing(failure: BaseException) -> bool:
    """Whether a server is there, and may do it in a moment."""
    passes = isinstance(failure, _PASSING) or getattr(failure, "err_code", 0) == _NO_PEERS
    return passes and not full(failure)


def remedy(failure: BaseException) -> str:
    """What mends it; "" for the usual advice."""
    return _MORE if full(failure) else ""


def reason(failure: BaseException) -> str:
    """The reason in a line."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {failure.verify_message}"
    if isinstance(failure, APIError) and failure.description:
        return _described(failure, failure.description)
    for kind, words in _WORDS:
        if isinstance(failure, kind):
            return words
    text = " ".join(str(failure).split()) or type(failure).__name__
    return _REFUSED if "authorization violation" in text.lower() else text


def _described(failure: APIError, words: str) -> str:
    if full(failure):
        return f"it is full ({words}): give it more room"
    return f"{words}: do most of its servers run?" if isinstance(failure, ServiceUnavailableError) else words
