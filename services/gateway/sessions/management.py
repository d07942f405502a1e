"""The port through which sessions hand requests to the management node of their virtual host; the service fills it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.gateway.sessions.client import Client
    from services.gateway.sessions.consumer import Consumer
    from services.gateway.vocabulary import Publish


class Management(Protocol):
    """The management node as sessions of one gateway see it."""

    def take(self, client: Client, request: Publish, indexes: Sequence[int]) -> list[int]:
        """The indexes of the messages that it takes; it answers them later."""

    def expect(self, client: Client, address: str, queue: str, consumer: Consumer) -> None:
        """Has replies to an address go to a consumer of a queue."""
