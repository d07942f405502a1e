"""The fanout exchange: everything goes everywhere (AMQP 0-9-1, 3.1.3.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from services.common.topology.exchanges.destinations import Destinations
from services.common.topology.exchanges.exchange_type import Binding, Destination


class FanoutExchange:
    """Keeps the destinations; routing keys and arguments only tell bindings apart."""

    needs_headers = False

    def __init__(self) -> None:
        self._destinations = Destinations()

    def bind(self, binding: Binding) -> None:
        self._destinations.add(binding.destination)

    def unbind(self, binding: Binding) -> None:
        self._destinations.drop(binding.destination)

    def route(self, keys: Collection[str], headers: Mapping[str, Any]) -> set[Destination]:  # noqa: ARG002 - the protocol's
        return set(self._destinations)

    def end_of(self, key: str) -> object:  # noqa: ARG002 - the protocol's
        """As ByKey says."""
        return self._destinations

    def only_key(self, binding: Binding) -> str | None:  # noqa: ARG002 - the protocol's
        return None
