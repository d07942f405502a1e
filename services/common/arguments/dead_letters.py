"""Where a queue's dead letters go, as a client says it: to be asked for before the queue is declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.common.arguments import queue
from services.common.arguments.reading import said

_NAMES: Final = (queue.DEAD_LETTER_EXCHANGE.name, "alternateExchange")


def exchange_of(table: Mapping[str, Any]) -> str | None:
    """The exchange, by whichever name; what is no name of one, and two that differ, the router refuses."""
    return queue.DEAD_LETTER_EXCHANGE.of(said({name: table[name] for name in _NAMES if name in table}))
