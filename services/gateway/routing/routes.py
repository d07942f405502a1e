"""Where messages go, remembered: exchange and key → queues, as the router said it and until the router says forget.

What depends on headers is remembered by the bytes of the properties too. A message with many keys (CC, BCC) goes where
each of them goes, as long as its exchange decides alone; else the router is asked about it as a whole, each time.

A message is routed from here only while the gateway has its place in the topology (design, section 6); otherwise it
waits.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.common.clients.outbound import Targets
from services.common.clients.topology import Metadata, TopologyClient
from services.common.errors import BrokerError, InternalError
from services.common.memory import available
from services.common.message.alike import objects
from services.common.message.facts import Facts
from services.common.topology.slots import SlotId
from services.common.topology.targets import targets_of
from services.gateway.routing.answer import Answer, internal_exchange, unknown_exchange
from services.gateway.routing.bindings import Bindings
from services.gateway.routing.own import OwnRoutes
from services.gateway.routing.portions import portions
from services.gateway.vocabulary import Kind, Publish
from services.rpc import router_pb2

_REMEMBERED = 100_000  # routes of one exchange; beyond, it begins again
_MOST = 128 << 20  # bytes of all routes, or a sixteenth of what there is; beyond, the exchange that has most of it does
_ROUTE = 250  # bytes of a route, about, besides its key and queues
_LONGEST = 1024  # bytes of properties that are remembered
_UNDER_WAY = 4  # portions of a question
_LEARNED = 64  # keys that one message with many teaches, at most

_Exchange = tuple[str, str]  # virtual host and name
_Address = tuple[str, str]  # exchange and routing key


@dataclass(slots=True)
class Route:
    """Slots for a key; `by_properties` where the headers decide."""

    queue_ids: Targets = ()
    by_properties: dict[bytes, Targets] | None = None
    adds_up: bool = False  # with those of other keys to the route of a message that has them all
    size: int = 0  # bytes of memory, about, when it is remembered

    @property
    def by_headers(self) -> bool:
        """Whether the headers decide."""
        return self.by_properties is not None


class RouteCache:
    """One gateway's memory of routes."""

    def __init__(self, topology: TopologyClient, bindings: Bindings | None = None) -> None:
        self._topology = topology
        self._own = OwnRoutes(topology, bindings or Bindings())
        self._exchanges: dict[_Exchange, dict[str, Route]] = defaultdict(dict)
        self._sizes: dict[_Exchange, int] = defaultdict(int)
        self._limit = min(_MOST, available() // 16)
        self.size = 0  # bytes of memory, about
        self._forgotten = 0  # grows with every forget: an answer that was asked for before one is not kept

    def find(self, virtual_host: str, publish: Publish) -> Sequence[Targets] | None:
        """Where each message goes, or None when that has to be asked first."""
        if self._own.usable and (own := self._own.find(virtual_host, publish)) is not None:
            return own
        if not self._topology.has_place():
            return None
        routes: dict[Kind, Route] = {}
        for kind in distinct(publish.kinds):
            route = self._known(virtual_host, kind)
            if route is None:
                return None
            routes[kind] = route
        return _targets(publish, routes)

    def find_first(self, virtual_host: str, publish: Publish) -> list[Targets]:
        """Where the first messages go, up to one about which the router must be asked."""
        routes: dict[Kind, Route] = {}
        found: list[Targets] = []
        if not self._topology.has_place():
            return found
        for kind, properties in zip(publish.kinds, publish.properties, strict=True):
            route = routes.get(kind) or self._known(virtual_host, kind)
            if route is None:
                break
            queue_ids = route.queue_ids if route.by_properties is None else route.by_properties.get(properties)
            if queue_ids is None:
                break
            routes[kind] = route
            found.append(queue_ids)
        return found

    def _known(self, virtual_host: str, kind: Kind) -> Route | None:
        return self._all_known(virtual_host, kind) if kind.more_keys else self._of(virtual_host, _address(kind))

    def _of(self, virtual_host: str, address: _Address) -> Route | None:
        routes = self._exchanges.get((virtual_host, address[0]))
        return routes.get(address[1]) if routes else None

    def _all_known(self, virtual_host: str, kind: Kind) -> Route | None:
        routes = self._exchanges.get((virtual_host, kind.facts.exchange))
        if not routes:
            return None
        queue_ids: dict[SlotId, None] = {}
        for key in (kind.facts.routing_key, *kind.more_keys):
            route = routes.get(key)
            if route is None or not route.adds_up:
                return None
            queue_ids.update(dict.fromkeys(route.queue_ids))
        return Route(tuple(queue_ids))

    async def ask_own(self, virtual_host: str, publish: Publish) -> Answer | None:
        """Where each message goes as far as this gateway knows it; None when the router must be asked."""
        return await self._own.ask(virtual_host, publish)

    async def ask(self, virtual_host: str, publish: Publish, metadata: Metadata = ()) -> Answer:
        """Where each message goes, by the router; all that is not known is asked for, in portions. Raises Unavailable.

        `metadata` goes with the first question.
        """
        if publish.kinds[0].more_keys:
            return await self._ask_all(virtual_host, publish, metadata)
        asking = _Asking(virtual_host, publish, self._forgotten, self._topology.version)
        if self._topology.has_place():
            asking.take({address: route for address in asking.firsts if (route := self._of(virtual_host, address))})
        if unknown := [address for address in asking.firsts if address not in asking.routes]:
            asking.learn(unknown, await self._route(asking.questions(unknown), metadata))
        if more := asking.properties():
            asking.learn_properties(more, await self._route([asking.question(*each) for each in more]))
        if self._is_still_so(asking.forgotten, asking.version):
            for (exchange, routing_key), route in asking.learned.items():
                self._remember((virtual_host, exchange), routing_key, route)
        return asking.answer()

    async def _route(self, questions: list[router_pb2.Message], metadata: Metadata = ()) -> router_pb2.RouteReply:
        """All answers; as old as the oldest of them. Some portions are under way together: the way takes longest."""
        asked = [(each, () if number else metadata) for number, each in enumerate(portions(questions))]
        answers: list[router_pb2.RouteReply] = []
        for first in range(0, len(asked), _UNDER_WAY):
            answers += await asyncio.gather(
                *(self._topology.route(*each) for each in asked[first : first + _UNDER_WAY])
            )
        routed = [each for answer in answers for each in answer.routed]
        return router_pb2.RouteReply(routed=routed, version=min(answer.version for answer in answers))

    async def _ask_all(self, virtual_host: str, publish: Publish, metadata: Metadata) -> Answer:
        """Of messages with equal properties and many keys; where their keys lead alone is learned with it."""
        forgotten, kind = self._forgotten, publish.kinds[0]
        exchange = virtual_host, kind.facts.exchange
        whole = _question(virtual_host, kind.facts, publish.properties[0])
        whole.more_keys.extend(kind.more_keys)
        learned = self._to_learn(exchange, [kind.facts.routing_key, *kind.more_keys])
        alone = [router_pb2.Message(virtual_host=exchange[0], exchange=exchange[1], routing_key=key) for key in learned]
        reply = await self._topology.route([whole, *alone], metadata)
        if fault := _fault(exchange, reply.routed[0]):
            return Answer(faults=dict.fromkeys(distinct(publish.kinds), fault))
        if self._is_still_so(forgotten, reply.version):
            for key, routed in zip(learned, reply.routed[1:], strict=True):
                route = _route(routed)
                route.by_properties = {} if routed.needs_headers else None
                self._remember(exchange, key, route)
        return Answer([_route(reply.routed[0]).queue_ids] * len(publish.kinds))

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

    def _add(self, exchange: _Exchange, route: Route, more: Mapping[bytes, Targets]) -> None:
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


class _Asking:
    """What is found out of one request; `routes` by address, `firsts` the first message of each.

    What was known is taken before the router is asked: meanwhile it may be forgotten, and the answer needs it still.
    `learned` is what was found out, alone: what is known besides is much more, and stays where it is.
    """

    def __init__(self, virtual_host: str, publish: Publish, forgotten: int, version: int) -> None:
        self.forgotten = forgotten
        self.version = version
        self.routes: dict[_Address, Route] = {}
        self.learned: dict[_Address, Route] = {}
        self.firsts: dict[_Address, int] = {}
        self._virtual_host = virtual_host
        self._publish = publish
        self._faults: dict[_Address, BrokerError] = {}
        for index, kind in enumerate(publish.kinds):
            self.firsts.setdefault(_address(kind), index)

    def take(self, known: Mapping[_Address, Route]) -> None:
        """What was known of it before; of what goes by its headers, as far as these messages need it."""
        self.routes.update(known)
        by_headers = _by_headers(known)
        needed: dict[_Address, dict[bytes, Targets]] = {address: {} for address in by_headers}
        for address, properties in self._addressed(by_headers):
            if (queue_ids := by_headers[address].get(properties)) is not None:
                needed[address][properties] = queue_ids
        for address, its in needed.items():
            self.routes[address] = Route(self.routes[address].queue_ids, its)

    def _addressed(self, addresses: Collection[_Address]) -> Iterator[tuple[_Address, bytes]]:
        """Address and properties of the messages that go to some addresses."""
        if addresses:
            for kind, properties in zip(self._publish.kinds, self._publish.properties, strict=True):
                if (address := _address(kind)) in addresses:
                    yield address, properties

    def question(self, address: _Address, properties: bytes) -> router_pb2.Message:
        """Where a message of an address goes that has such properties."""
        return _question(self._virtual_host, self._publish.kinds[self.firsts[address]].facts, properties)

    def questions(self, addresses: Iterable[_Address]) -> list[router_pb2.Message]:
        """Where the first message of each goes."""
        return [self.question(address, self._publish.properties[self.firsts[address]]) for address in addresses]

    def learn(self, addresses: Iterable[_Address], reply: router_pb2.RouteReply) -> None:
        """The router has said where they go."""
        self.version = reply.version
        for address, routed in zip(addresses, reply.routed, strict=True):
            if fault := _fault((self._virtual_host, address[0]), routed):
                self._faults[address] = fault
                continue
            self.routes[address] = self.learned[address] = route = _route(routed)
            if routed.needs_headers:
                route.by_properties = {self._publish.properties[self.firsts[address]]: route.queue_ids}

    def properties(self) -> list[tuple[_Address, bytes]]:
        """What of messages that go by their headers is not known yet."""
        by_headers = _by_headers(self.routes)
        its = dict.fromkeys(self._addressed(by_headers))
        return [(address, properties) for address, properties in its if properties not in by_headers[address]]

    def learn_properties(self, asked: Sequence[tuple[_Address, bytes]], reply: router_pb2.RouteReply) -> None:
        """The router has said where they go."""
        self.version = min(self.version, reply.version)
        learned: dict[_Address, dict[bytes, Targets]] = defaultdict(dict)
        for (address, properties), routed in zip(asked, reply.routed, strict=True):
            learned[address][properties] = targets_of(routed.queue_ids, routed.not_local)
        for address, more in learned.items():
            route = self.routes[address]
            more.update(self.learned[address].by_properties or {} if address in self.learned else {})
            self.learned[address] = Route(route.queue_ids, more)
            self.routes[address] = Route(route.queue_ids, {**(route.by_properties or {}), **more})

    def answer(self) -> Answer:
        """All of it."""
        kinds = distinct(self._publish.kinds)
        if self._faults:
            return Answer(faults={kind: self._faults[at] for kind in kinds if (at := _address(kind)) in self._faults})
        targets = _targets(self._publish, {kind: self.routes[_address(kind)] for kind in kinds})
        if targets is None:
            raise InternalError("not every message of a request has been asked for")
        return Answer(targets)


def distinct(kinds: Sequence[Kind]) -> list[Kind]:
    """Each once, in the order in which they come."""
    return list(objects(kinds).values())


def _address(kind: Kind) -> _Address:
    return kind.facts.exchange, kind.facts.routing_key


def _by_headers(routes: Mapping[_Address, Route]) -> dict[_Address, dict[bytes, Targets]]:
    return {address: route.by_properties for address, route in routes.items() if route.by_properties is not None}


def _targets(publish: Publish, routes: Mapping[Kind, Route]) -> list[Targets] | None:
    """Of each message; None when the properties of one are not known."""
    kinds = publish.kinds
    if len(routes) == 1 and not (route := routes[kinds[0]]).by_headers:
        return [route.queue_ids] * len(kinds)
    if not any(route.by_headers for route in routes.values()):
        return list(map({kind: route.queue_ids for kind, route in routes.items()}.__getitem__, kinds))
    found: list[Targets] = []
    for kind, properties in zip(kinds, publish.properties, strict=True):
        known = routes[kind].by_properties
        queue_ids = routes[kind].queue_ids if known is None else known.get(properties)
        if queue_ids is None:
            return None
        found.append(queue_ids)
    return found


def _question(virtual_host: str, facts: Facts, properties: bytes) -> router_pb2.Message:
    return router_pb2.Message(
        virtual_host=virtual_host,
        exchange=facts.exchange,
        routing_key=facts.routing_key,
        format=facts.format,
        properties=properties,
    )


def _fault(exchange: _Exchange, routed: router_pb2.Routed) -> BrokerError | None:
    """Why nothing can be published there, if so."""
    virtual_host, name = exchange
    if routed.unknown_virtual_host or routed.unknown_exchange:
        return unknown_exchange(virtual_host, name)
    if routed.internal:
        return internal_exchange(virtual_host, name)
    return None


def _route(routed: router_pb2.Routed) -> Route:
    adds_up = not routed.needs_headers and not routed.passed_on and not routed.not_local
    return Route(targets_of(routed.queue_ids, routed.not_local), adds_up=adds_up)


def _weight(queue_ids: Targets) -> int:
    return _ROUTE + 8 * len(queue_ids)
