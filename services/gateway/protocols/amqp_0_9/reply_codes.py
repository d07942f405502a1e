"""Reply codes (section 1.2 of the specification's XML): which error is which, and which of them end only a channel."""

from __future__ import annotations

from services.common import errors
from services.common.errors import BrokerError, Reach, of_kind

NO_ROUTE = 312
NO_CONSUMERS = 313

NAMES = {
    311: "CONTENT_TOO_LARGE",
    312: "NO_ROUTE",
    313: "NO_CONSUMERS",
    320: "CONNECTION_FORCED",
    402: "INVALID_PATH",
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    505: "UNEXPECTED_FRAME",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}

# class="soft-error" in the XML; every other code ends the connection.
SOFT = frozenset({311, 312, 313, 403, 404, 405, 406})


class FrameFault(BrokerError):
    """The bytes are no frames: where the next one begins is unknown."""

    reach = Reach.CONNECTION


class ChannelFault(BrokerError):
    reach = Reach.CONNECTION


class UnexpectedFrame(BrokerError):
    reach = Reach.CONNECTION


_INTERNAL_ERROR = 541
_CODES: dict[type[BrokerError], int] = {
    errors.NotFound: 404,
    errors.AccessRefused: 403,
    errors.ResourceLocked: 405,
    errors.LinkStolen: 405,  # another consumer has the queue
    errors.PreconditionFailed: 406,
    errors.NotAllowed: 530,
    errors.CommandInvalid: 503,
    errors.SyntaxFault: 502,
    errors.NotImplementedHere: 540,
    errors.ResourceError: 506,
    errors.ConnectionForced: 320,
    FrameFault: 501,
    ChannelFault: 504,
    UnexpectedFrame: 505,
}


def reply_code(error: BrokerError) -> int:
    """Its own, or that of the kind of which it is one; 541 for what is a fault of ours, or of a service."""
    return of_kind(_CODES, error, _INTERNAL_ERROR)


def ends_connection(error: BrokerError) -> bool:
    """Whether `error` is a connection exception (section 1.2, hard-error)."""
    return error.reach is Reach.CONNECTION or reply_code(error) not in SOFT


def reply_text(error: BrokerError) -> str:
    """`NOT_FOUND - no queue 'x'`, as RabbitMQ words it, no longer than a short string may be."""
    text = f"{NAMES[reply_code(error)]} - {error.text}"
    return text.encode(errors="replace")[:255].decode(errors="ignore")
