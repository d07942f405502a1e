"""An exchange as messages come to it."""

from __future__ import annotations

from services.common.message import arguments
from services.common.topology.definitions import Exchange
from services.common.topology.exchanges.exchange_type import Binding, ExchangeType


class Source:
    """An exchange with what is bound to it."""

    __slots__ = ("alternate", "bindings", "definition", "matcher")

    def __init__(self, definition: Exchange, matcher: ExchangeType) -> None:
        self.definition = definition
        self.matcher = matcher
        self.alternate: str | None = arguments.load(definition.arguments).get("alternate-exchange")
        self.bindings: dict[Binding, None] = {}
