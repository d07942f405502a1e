"""Exchanges and bindings as the router's records say them. Pure.

Nothing follows by itself: what a deletion takes along has records of its own. A record says how something is, so one
that says what is known already, or is gone already, changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from services.common import plugins
from services.common.topology import records
from services.common.topology.definitions import Exchange
from services.common.topology.exchanges.exchange_type import Binding, Destination, ExchangeType
from services.common.topology.predeclared import DEFAULT_EXCHANGE, predeclared
from services.common.topology.source import Source, weight
from services.rpc.router_pb2 import TopologyRecord


class NotKnown(Exception):
    """There is no plug-in here for an exchange's type: only a router can say what it does."""


class Replica:
    """Made by records alone; `create_default` gives what the default exchange of a virtual host does."""

    def __init__(self, create_default: Callable[[str], ExchangeType]) -> None:
        self.count = 0
        """Bindings that there are, each by its weight."""
        self._create_default = create_default
        self._hosts: dict[str, dict[str, Source]] = {}

    def sources(self, virtual_host: str) -> dict[str, Source]:
        """Its exchanges, of which some are there from the start."""
        if (sources := self._hosts.get(virtual_host)) is None:
            made = {each.name: Source(each, _matcher(each.type)) for each in predeclared(virtual_host)}
            made[DEFAULT_EXCHANGE].matcher = self._create_default(virtual_host)
            sources = self._hosts[virtual_host] = made
        return sources

    def drop_host(self, virtual_host: str) -> None:
        """With all that is in it."""
        for source in self._hosts.pop(virtual_host, {}).values():
            self.count -= sum(map(weight, source.bindings))

    def replay(self, changes: Iterable[TopologyRecord]) -> None:
        """Makes it what the records say; raises what they may when they are read, and is of no use then."""
        by_kind: dict[str, list[TopologyRecord]] = {kind: [] for kind in _KINDS}
        for each in changes:
            by_kind[each.kind].append(each)
        # What refers to something goes before it, and comes after it.
        for kind in reversed(_KINDS):
            for each in by_kind[kind]:
                if each.deleted:
                    _DROP[kind](self, *json.loads(each.key))
        for kind in _KINDS:
            for each in by_kind[kind]:
                if not each.deleted:
                    _PUT[kind](self, each.value)

    def put_exchange(self, value: bytes) -> None:
        exchange = records.read_exchange(value)
        known = self.sources(exchange.virtual_host).get(exchange.name)
        if known is None or known.definition != exchange:
            self._put(exchange)

    def put_binding(self, value: bytes) -> None:
        virtual_host, name, binding = records.read_binding(value)
        source = self.sources(virtual_host)[name]
        if binding not in source.bindings:
            source.bind(binding)
            self.count += weight(binding)

    def drop_exchange(self, virtual_host: str, name: str) -> None:
        if source := self.sources(virtual_host).pop(name, None):
            self.count -= sum(map(weight, source.bindings))

    def drop_binding(self, virtual_host: str, name: str, to: Destination, routing_key: str, arguments: str) -> None:
        source = self.sources(virtual_host).get(name)
        binding = Binding(to, routing_key, arguments.encode())
        if source and binding in source.bindings:
            source.unbind(binding)
            self.count -= weight(binding)

    def _put(self, exchange: Exchange) -> None:
        self.drop_exchange(exchange.virtual_host, exchange.name)
        self.sources(exchange.virtual_host)[exchange.name] = Source(exchange, _matcher(exchange.type))


class _Foreign:
    """Of a type that this process does not know."""

    needs_headers = False

    def bind(self, binding: Binding) -> None:
        """Whatever that means."""

    def unbind(self, binding: Binding) -> None:
        """As above."""

    def route(self, keys: Collection[str], headers: Mapping[str, Any]) -> set[Destination]:  # noqa: ARG002 - as above
        raise NotKnown

    def only_key(self, binding: Binding) -> str | None:  # noqa: ARG002 - the protocol's
        return None


def _matcher(kind: str) -> ExchangeType:
    matcher: ExchangeType = plugins.load("exchange_types", kind)() if kind in _installed() else _Foreign()
    return matcher


def _installed() -> tuple[str, ...]:
    return plugins.names("exchange_types")


_KINDS = (records.EXCHANGE, records.BINDING)  # in the order in which they build on each other
_PUT: Mapping[str, Callable[[Replica, bytes], None]] = {
    records.EXCHANGE: Replica.put_exchange,
    records.BINDING: Replica.put_binding,
}
_DROP: Mapping[str, Callable[..., None]] = {
    records.EXCHANGE: Replica.drop_exchange,
    records.BINDING: Replica.drop_binding,
}
