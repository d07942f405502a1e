"""What the broker says to a protocol engine, in no protocol's words: the other half of `vocabulary`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from services.gateway.outcomes import PublishDisposition
from services.gateway.vocabulary import Deliveries, Request, Returned

ANSWERED: Final = object()
"""What a request gives of which its connection has told the engine already."""


class Answers(Protocol):
    """An engine, as sessions speak to it."""

    def succeed(self, request: Request, result: Any = None) -> None:  # noqa: ANN401 - as each request says
        """The answer to `request`."""

    def deliver(self, session: int, deliveries: Deliveries) -> None: ...

    def confirm(self, session: int, dispositions: Sequence[PublishDisposition]) -> None:
        """What became of publishes that have numbers, each told once, in the order in which it became known."""

    def returned(self, session: int, returned: Returned) -> None:
        """Sends messages back; called before their confirm."""
