"""Where messages go, remembered: exchange and key → queues, as the router said it and until the router says forget.

What depends on headers is remembered by the bytes of the properties too. A message with many keys (CC, BCC) goes where
each of them goes, as long as its exchange decides alone; else the router is asked about it as a whole, each time.

A message is routed from here only while the gateway has its place in the topology (design, section 6); otherwise it
waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from services.common.clients.topology import Metadata, TopologyClient
from services.common.errors import AccessRefused, NotFound
from services.common.memory import available
from services.gateway.vocabulary import Publish
from services.rpc import router_pb2

_REMEMBERED = 100_000  # routes of one exchange; beyond, it begins again
_MOST = 128 << 20  # bytes of all routes, or a sixteenth of what there is; beyond, the exchange that has most of it does
_ROUTE = 250  # bytes of a route, about, besides its key and queues
_LONGEST = 1024  # bytes of properties that are remembered
_LEARNED = 64  # keys that one message with many teaches, at most

_Exchange = tuple[str, str]  # virtual host and name


@dataclass(slots=True)
class Route:
    """Queue ids for a key; `by_properties` where the headers decide."""

    queue_ids: tuple[int, ...] = ()
    by_properties: dict[bytes, tuple[int, ...]] | None = None
    adds_up: bool = False  # with those of other keys to the route of a message that has them all
    size: int = 0  # bytes of memory, about, when it is remembered


class RouteCache:
    """One gateway's memory of routes."""

    def __init__(self, topology: TopologyClient) -> None:
        self._topology = topology
        self._exchanges: dict[_Exchange, dict[str, Route]] = defaultdict(dict)
        self._sizes: dict[_Exchange, int] = defaultdict(int)
        self._limit = min(_MOST, available() // 16)
        self.size = 0  # bytes of memory, about
        self._forgotten = 0  # grows with every forget: an answer that was asked for before one is not kept

    def find(self, virtual_host: str, publish: Publish) -> Route | None:
        """The route of a run, or None when the router must be asked first."""
        if publish.more_keys:
            return self._find_all(virtual_host, publish)
        routes = self._exchanges.get((virtual_host, publish.exchange))
        route = routes.get(publish.routing_key) if routes else None
        if route is None or not self._topology.has_place():
            return None
        known = route.by_properties
        return route if known is None or all(properties in known for properties in publish.properties) else None

    def _find_all(self, virtual_host: str, publish: Publish) -> Route | None:
        routes = self._exchanges.get((virtual_host, publish.exchange))
        if not routes or not self._topology.has_place():
            return None
        queue_ids: dict[int, None] = {}
        for key in (publish.routing_key, *publish.more_keys):
            route = routes.get(key)
            if route is None or not route.adds_up:
                return None
            queue_ids.update(dict.fromkeys(route.queue_ids))
        return Route(tuple(queue_ids))

    async def ask(self, virtual_host: str, publish: Publish, metadata: Metadata = ()) -> Route:
        """The route of a run from the router; raises NotFound, AccessRefused (internal exchange), Unavailable.

        `metadata` goes with the first question.
        """
        if publish.more_keys:
            return await self._ask_all(virtual_host, publish, metadata)
        forgotten = self._forgotten
        distinct = list(dict.fromkeys(publish.properties))
        reply = await self._questions(virtual_host, publish, distinct[:1], metadata)
        first, version = reply.routed[0], reply.version
        _check(virtual_host, publish, first)
        route = _route(first)
        if first.needs_headers:
            more = await self._questions(virtual_host, publish, distinct[1:])
            answers, version = [first, *more.routed], min(version, more.version or version)
            route.by_properties = {
                properties: tuple(answer.queue_ids) for properties, answer in zip(distinct, answers, strict=True)
            }
        if self._is_still_so(forgotten, version):
            self._remember((virtual_host, publish.exchange), publish.routing_key, route)
        return route

    async def _ask_all(self, virtual_host: str, publish: Publish, metadata: Metadata) -> Route:
        """Of messages with equal properties and many keys; where their keys lead alone is learned with it."""
        forgotten, exchange = self._forgotten, (virtual_host, publish.exchange)
        whole = _question(virtual_host, publish, publish.properties[0])
        whole.more_keys.extend(publish.more_keys)
        learned = self._to_learn(exchange, [publish.routing_key, *publish.more_keys])
        alone = [router_pb2.Message(virtual_host=exchange[0], exchange=exchange[1], routing_key=key) for key in learned]
        reply = await self._topology.route([whole, *alone], metadata)
        _check(virtual_host, publish, reply.routed[0])
        if self._is_still_so(forgotten, reply.version):
            for key, answer in zip(learned, reply.routed[1:], strict=True):
                route = _route(answer)
                route.by_properties = {} if answer.needs_headers else None
                self._remember(exchange, key, route)
        return _route(reply.routed[0])

    def _to_learn(self, exchange: _Exchange, keys: list[str]) -> list[str]:
        """Keys that are not known, some of them if they are many; none when they would not add up anyway."""
        known = self._exchanges.get(exchange, {})
        if any(key in known and not known[key].adds_up for key in keys):
            return []
        return [key for key in keys if key not in known][:_LEARNED]

    def _is_still_so(self, forgotten: int, version: int) -> bool:
        """Whether an answer may be remembered that was asked for when so much had been forgotten."""
        # A router that follows may be behind, and what this gateway has forgotten meanwhile it is not told again.
        return forgotten == self._forgotten and version >= self._topology.version

    async def _questions(
        self, virtual_host: str, publish: Publish, properties: list[bytes], metadata: Metadata = ()
    ) -> router_pb2.RouteReply:
        if not properties:
            return router_pb2.RouteReply()
        messages = [_question(virtual_host, publish, each) for each in properties]
        return await self._topology.route(messages, metadata)

    def _remember(self, exchange: _Exchange, routing_key: str, route: Route) -> None:
        if route.by_properties is not None:
            # Long properties hardly ever come twice, and would be kept here when their message is gone.
            kept = {properties: ids for properties, ids in route.by_properties.items() if len(properties) <= _LONGEST}
            route = Route(route.queue_ids, kept)
        old = self._exchanges[exchange].get(routing_key)
        if old and old.by_properties is not None and route.by_properties is not None:
            self._add(exchange, old, route.by_properties)
        else:
            self._put(exchange, routing_key, route)
        if self.size > self._limit:
            self._make_room()

    def _put(self, exchange: _Exchange, routing_key: str, route: Route) -> None:
        self._forget_key(exchange, routing_key)
        if len(self._exchanges[exchange]) >= _REMEMBERED:
            self._forget_exchange(exchange)
        self._exchanges[exchange][routing_key] = route
        known = (route.by_properties or {}).items()
        size = len(routing_key) + _weight(route.queue_ids) + sum(len(each) + _weight(ids) for each, ids in known)
        self._grow(exchange, route, size)

    def _add(self, exchange: _Exchange, route: Route, more: Mapping[bytes, tuple[int, ...]]) -> None:
        known = route.by_properties
        assert known is not None, "the headers decide"
        if len(known) >= _REMEMBERED:
            known.clear()
            self._grow(exchange, route, -route.size)
        size = sum(len(each) + _weight(ids) for each, ids in more.items() if each not in known)
        known.update(more)
        self._grow(exchange, route, size)

    def _grow(self, exchange: _Exchange, route: Route, size: int) -> None:
        route.size += size
        self._sizes[exchange] += size
        self.size += size

    def _make_room(self) -> None:
        """What has most of it begins again; not one route at a time, since this looks at all exchanges."""
        for exchange in sorted(self._sizes, key=self._sizes.__getitem__, reverse=True):
            self._forget_exchange(exchange)
            if self.size <= self._limit // 8 * 7:
                return

    def _forget_exchange(self, exchange: _Exchange) -> None:
        self._exchanges.pop(exchange, None)
        self.size -= self._sizes.pop(exchange, 0)

    def _forget_key(self, exchange: _Exchange, routing_key: str) -> None:
        routes = self._exchanges.get(exchange)
        if routes and (route := routes.pop(routing_key, None)):
            self._grow(exchange, route, -route.size)

    # -------------------------------------------------------------- the topology says

    def forget(self, what: router_pb2.Forget) -> None:
        """A change of bindings reaches these routes."""
        self._forgotten += 1
        exchange = what.virtual_host, what.exchange
        if what.all_keys:
            self._forget_exchange(exchange)
        else:
            self._forget_key(exchange, what.routing_key)

    def forget_all(self) -> None:
        """This gateway lost its place: nothing of what it knew is to be trusted."""
        self._forgotten += 1
        self._exchanges.clear()
        self._sizes.clear()
        self.size = 0


def _question(virtual_host: str, publish: Publish, properties: bytes) -> router_pb2.Message:
    return router_pb2.Message(
        virtual_host=virtual_host,
        exchange=publish.exchange,
        routing_key=publish.routing_key,
        format=publish.format,
        properties=properties,
    )


def _check(virtual_host: str, publish: Publish, routed: router_pb2.Routed) -> None:
    if routed.unknown_virtual_host or routed.unknown_exchange:
        raise NotFound(f"no exchange '{publish.exchange}' in vhost '{virtual_host}'")
    if routed.internal:
        raise AccessRefused(f"cannot publish to internal exchange '{publish.exchange}' in vhost '{virtual_host}'")


def _route(routed: router_pb2.Routed) -> Route:
    return Route(tuple(routed.queue_ids), adds_up=not routed.needs_headers and not routed.passed_on)


def _weight(queue_ids: tuple[int, ...]) -> int:
    return _ROUTE + 8 * len(queue_ids)
