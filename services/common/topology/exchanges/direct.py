"""The direct exchange: the routing key equals the binding's (AMQP 0-9-1, 3.1.3.1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from services.common.topology.exchanges.destinations import Destinations
from services.common.topology.exchanges.exchange_type import Binding, Destination


class _ByKey(dict[str, Destinations]):
    """Destinations by key: those of any other are `nowhere`."""

    __slots__ = ("nowhere",)

    def __init__(self) -> None:
        super().__init__()
        self.nowhere = Destinations()

    def __missing__(self, key: str) -> Destinations:
        return self.nowhere


class DirectExchange:
    """One dictionary look-up, however much is bound."""

    needs_headers = False

    def __init__(self) -> None:
        self._by_key = _ByKey()
        self.end_of: Callable[[str], object] = self._by_key.__getitem__
        """As ByKey says; of what is bound, no call of Python's."""

    def bind(self, binding: Binding) -> None:
        self._by_key.setdefault(binding.routing_key, Destinations()).add(binding.destination)

    def unbind(self, binding: Binding) -> None:
        destinations = self._by_key[binding.routing_key]
        destinations.drop(binding.destination)
        if not destinations:
            del self._by_key[binding.routing_key]

    def route(self, keys: Collection[str], headers: Mapping[str, Any]) -> set[Destination]:  # noqa: ARG002 - the protocol's
        return set().union(*(self._by_key.get(key, ()) for key in keys))

    def only_key(self, binding: Binding) -> str | None:
        return binding.routing_key
