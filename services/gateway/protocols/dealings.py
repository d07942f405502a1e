"""What waits to go either way between a peer and the broker, in any protocol's engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from services.gateway.protocols.idleness import FOR_EVER, Idleness
from services.gateway.vocabulary import Request

Chunk: TypeAlias = bytes | memoryview
"""Of what is written, one behind the other."""

Received: TypeAlias = bytes | memoryview
"""Of what is read, one behind the other. A view is lent for as long as a call takes: what is kept of it is copied."""

LARGE: Final = 16 << 10
"""Bytes of a message, from which on it is large: what is lent is read for such messages."""


@dataclass(slots=True, kw_only=True)
class Dealings:
    """Requests of the peer, and bytes for it, in their order. `idleness` is what was agreed."""

    requests: list[Request] = field(default_factory=list)
    out: list[Chunk] = field(default_factory=list)
    idleness: Idleness = FOR_EVER
    incomplete: int = 0  # bytes of memory of messages that have not come whole
    effort: int = 0  # microseconds that the last read has taken, about; see `stream_engine.MOST_EFFORT`

    def ask(self, request: Request) -> None:
        """Puts a request behind those that `receive` or `pending_requests` gives next."""
        self.requests.append(request)

    def take_requests(self) -> list[Request]:
        """The requests so far."""
        taken, self.requests = self.requests, []
        return taken
