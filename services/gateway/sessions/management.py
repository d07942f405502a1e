"""What sessions hand over that is for the management node of their virtual host: a port, which the service fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.gateway.sessions.client import Client
    from services.gateway.sessions.consumer import Consumer
    from services.gateway.vocabulary import Publish


class Management(Protocol):
    """Of one gateway."""

    def take(self, client: Client, request: Publish, indexes: Sequence[int]) -> list[int]:
        """Those of a request that it takes: it answers them later."""

    def expect(self, client: Client, address: str, queue: str, consumer: Consumer) -> None:
        """Replies to an address go to a consumer of a queue."""
