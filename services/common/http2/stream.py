"""One stream of a connection: its windows, its unsent messages, and the message that is coming in."""

from __future__ import annotations

from collections import deque

from services.common.http2.events import Fields
from services.common.http2.messages import MessageReader
from services.common.http2.receiving import ReceiveWindow


class Stream:
    """Open in both directions at first (RFC 9113 section 5.1); we ended it: `ended`, the peer: `peer_ended`."""

    __slots__ = ("ended", "peer_ended", "reader", "receiving", "trailers", "unsent", "window")

    def __init__(self, window: int, to_receive: int, largest_message: int) -> None:
        """`window` octets may be sent, `to_receive` may be received (section 6.9)."""
        self.window = window
        self.receiving = ReceiveWindow(to_receive)
        self.reader = MessageReader(largest_message)
        self.unsent: deque[memoryview] = deque()
        self.trailers: Fields | None = None  # to be sent when nothing is unsent
        self.ended = False
        self.peer_ended = False
