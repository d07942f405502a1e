"""Where a session's client hears what answers its requests; see operations/direct_reply.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from services.gateway.sessions.consumer import Consumer


class ReplyAddress(NamedTuple):
    """It holds as long as the session has the consumer."""

    queue: str
    consumer: Consumer
