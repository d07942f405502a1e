"""What the broker says to a protocol engine, in no protocol's words: the other half of `vocabulary`."""

from __future__ import annotations

from typing import Any, Final, Protocol

from services.gateway.vocabulary import Deliveries, Request, Returned

ANSWERED: Final = object()
"""What a request gives of which its connection has told the engine already."""


class Answers(Protocol):
    """An engine, as sessions speak to it."""

    def succeed(self, request: Request, result: Any = None) -> None:  # noqa: ANN401 - as each request says
        """The answer to `request`."""

    def deliver(self, session: int, deliveries: Deliveries) -> None: ...

    def confirm(self, session: int, first: int, last: int, *, cumulative: bool, accepted: bool) -> None:
        """Publishes `first`..`last` are safe (or refused); `cumulative`: so is every one before them."""

    def returned(self, session: int, returned: Returned) -> None:
        """Sends messages back; called before their confirm."""
