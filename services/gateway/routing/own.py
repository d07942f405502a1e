"""Where messages go by this gateway's own copy of the bindings: a key that comes for the first time costs no question.

The copy is of the version that the gateway has acknowledged, so what is found in it is as true as what is remembered of
a router's answers (design, section 6). What was found is remembered too, until the version is another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Final, Protocol, cast

from services.common.clients.outbound import Targets
from services.common.errors import BrokerError
from services.common.memo import Memo
from services.common.message.alike import are_alike, objects
from services.common.message.facts import EXCHANGE, KEY
from services.common.topology.exchanges.destinations import Destinations
from services.common.topology.exchanges.exchange_type import Destination
from services.common.topology.message import Published
from services.common.topology.route import Route, route
from services.common.topology.slots import SlotId
from services.common.topology.targets import targets_of
from services.gateway.routing.answer import Answer, internal_exchange, unknown_exchange
from services.gateway.routing.bindings import Bindings
from services.gateway.routing.portions import WORDS, words
from services.gateway.routing.replica import NotKnown
from services.gateway.vocabulary import Kind, Publish

_REMEMBERED = 16384  # keys: to look one up takes a tenth of what it takes to find where it leads
_BYTES = 4 << 20
_ENTRY = 250  # bytes of one, about, besides its key and queues
_KIND = 500  # bytes of a kind, likewise, which its connection may have forgotten by then
_LONGEST = 1024  # bytes of properties that are remembered
_SHARED = 4096  # targets of which there is one object …
_SHARED_BYTES = 4 << 20  # … and their bytes: a fanout exchange may have very many queues

_WORD = 8  # keys whose end is known that take as long as a word of others …
_LONG = 32  # … if they have no more characters
_FEW = 8  # queues

_BY_HEADERS: Final[Targets] = (SlotId(-1),)
"""In place of the targets of a key: they depend on the properties."""

_FACTS: Final = attrgetter("facts")
_MORE_KEYS: Final = attrgetter("more_keys")
_EXCHANGE_OF, _KEY_OF = itemgetter(EXCHANGE), itemgetter(KEY)

_Key = tuple[Any, ...]
_EndOf = Callable[[str], object]


class Topology(Protocol):
    """Whose copy it is."""

    @property
    def version(self) -> int:
        """That this gateway has acknowledged, or is about to."""

    def has_place(self) -> bool:
        """Whether no change is answered before this gateway has acknowledged it."""


class OwnRoutes:
    """One gateway's."""

    def __init__(self, topology: Topology, bindings: Bindings) -> None:
        self._topology = topology
        self._bindings = bindings
        self._version = -1
        self._known: Memo[_Key, Targets] = Memo(_REMEMBERED, _BYTES)
        self._ends: Memo[int, tuple[object, Targets]] = Memo(_REMEMBERED, _BYTES)
        self._end_of: dict[tuple[str, str], _EndOf | None] = {}
        self._straight: dict[tuple[Destination, ...], Targets] = {}  # by what an end holds
        self._shared: Memo[Targets, Targets] = Memo(_SHARED, _SHARED_BYTES)

    @property
    def usable(self) -> bool:
        """Whether it knows as much as a router."""
        return self._bindings.whole and self._topology.has_place()

    def find(self, virtual_host: str, publish: Publish) -> Sequence[Targets] | None:
        """Where each message goes, if that takes no longer than a portion and nothing is wrong with any."""
        search = _Search(self, virtual_host, publish)
        try:
            more = any(True for _ in search.portions())
        except (NotKnown, BrokerError):
            return None
        return None if more or search.faults else search.targets()

    async def ask(self, virtual_host: str, publish: Publish) -> Answer | None:
        """Where each message goes, with others' turns between portions; None where only a router can say it.

        Raises BrokerError for properties that cannot be read.
        """
        if not self.usable:
            return None
        search = _Search(self, virtual_host, publish)
        try:
            for _ in search.portions():
                await asyncio.sleep(0)
                if not self.usable:
                    return None
        except NotKnown:
            return None
        return Answer(faults=search.faults) if search.faults else Answer(search.targets())

    # -------------------------------------------------------------- for a search

    def known(self) -> Memo[_Key, Targets]:
        """What was found by this version; good for as long as nothing is awaited."""
        if self._version != self._topology.version:
            self._version = self._topology.version
            self._known.clear()
            self._ends.clear()
            self._end_of.clear()
            self._straight.clear()
        elif len(self._straight) > _REMEMBERED:
            self._straight.clear()
        return self._known

    def end_of(self, virtual_host: str, exchange: str) -> _EndOf | None:
        """As ByKey says, where keys alone decide in an exchange; good for as long as `known` is."""
        key = virtual_host, exchange
        if key not in self._end_of:
            source = (self._bindings.sources(virtual_host) or {}).get(exchange)
            self._end_of[key] = source.end_of() if source and not source.definition.internal else None
        return self._end_of[key]

    def straight(self, end: object) -> Targets | None:
        """Where an end leads that is nothing but a few queues, as most keys' of a direct exchange; None of any other.

        To find that again takes less than to remember it for each key.
        """
        if not isinstance(end, Destinations) or not 0 < len(end) <= _FEW:  # what leads nowhere may have an alternate
            return None
        found = tuple(end)
        if (targets := self._straight.get(found)) is None and all(isinstance(each, int) for each in found):
            targets = self._straight[found] = self.shared(Route(set(end)))  # type: ignore[arg-type]  # they are queues
        return targets

    def _all_straight(self, ends: Sequence[object]) -> list[Targets] | None:
        """`straight` of many ends; None if any of them is another one."""
        if set(map(type, ends)) != {Destinations}:
            return None
        destinations = cast("Sequence[Destinations]", ends)
        counts = set(map(len, destinations))
        if not 0 < min(counts) <= max(counts) <= _FEW:
            return None
        if len(firsts := list(chain.from_iterable(destinations))) == firsts.count(firsts[0]) == len(ends):
            targets = self.straight(ends[0])
            return None if targets is None else [targets] * len(ends)
        found = list(map(self._straight.get, map(tuple, destinations)))
        if None in found:
            found = list(map(self.straight, ends))
        return None if None in found else cast("list[Targets]", found)

    def lead(self, ends: Sequence[object]) -> list[Targets] | None:
        """Where each of some ends leads; None unless all of that is known, or straight."""
        if isinstance(ends[0], Destinations):
            return self._all_straight(ends)
        known = {identity: self._ends.get(identity) for identity in set(map(id, ends))}
        if None in known.values():
            return None
        targets = {identity: at_end[1] for identity, at_end in known.items() if at_end}
        return list(map(targets.__getitem__, map(id, ends)))

    def ends(self) -> Memo[int, tuple[object, Targets]]:
        """Where ends of keys lead, by their identity; good for as long as `known` is."""
        return self._ends

    def remember(self, key: _Key, end: object, found: Route, targets: Targets) -> None:
        """Where a key leads; all others with the same end do, if nothing but the first exchange had a say."""
        if end is None or found.passed_on or found.needs_headers:
            self._known.put(key, targets, _ENTRY + sum(map(len, key)) + 8 * len(targets))
        else:
            self._ends.put(id(end), (end, targets), _ENTRY + 8 * len(targets))

    def evaluate(self, virtual_host: str, kind: Kind, properties: bytes) -> Route:
        """Where a message goes. Raises NotKnown, and BrokerError for what cannot be read."""
        facts = kind.facts
        sources = self._bindings.sources(virtual_host) or {}
        return route(
            sources,
            facts.exchange,
            facts.routing_key,
            Published(facts, properties),
            kind.more_keys,
        )

    def shared(self, found: Route) -> Targets:
        """One object for all that go to the same queues: so a column of them is seen to be alike."""
        targets = targets_of(found.queue_ids, found.not_local)
        known = self._shared.get(targets)
        if known is None and (known := self._shared.recall(targets)) is None:
            self._shared.put(targets, targets, 8 * len(targets))
            return targets
        return known


class _Search:
    """Of one request: where each kind leads, and each message of the kinds that go by their headers."""

    def __init__(self, own: OwnRoutes, virtual_host: str, publish: Publish) -> None:
        self.faults: dict[Kind, BrokerError] = {}
        self._own = own
        self._host = virtual_host
        self._kinds = publish.kinds
        self._properties = publish.properties
        self._found: dict[int, Targets] = {}  # by identity of the kind
        self._each: list[Targets] = []  # of the messages, when some go by their headers, or all are of other kinds

    def portions(self) -> Iterator[None]:
        """Looks at a portion of it, and yields when there is more."""
        self._own.known()  # and forgets what is so no longer
        if are_alike(self._kinds) or not self._all_by_ends():
            yield from self._portions_by_keys()

    def _portions_by_keys(self) -> Iterator[None]:
        own, found, known = self._own, self._found, self._own.known()
        ends, exchange, end_of, done = own.ends(), None, None, 0
        for kind, properties in self._firsts():
            facts, end = kind.facts, None
            if facts.exchange != exchange:
                exchange = facts.exchange
                end_of = own.end_of(self._host, exchange)
            if end_of and not kind.more_keys:
                end = end_of(facts.routing_key)
                targets = own.straight(end)
                if targets is None and end is not None and (at_end := ends.get(id(end)) or ends.recall(id(end))):
                    targets = at_end[1]
                if targets is not None:
                    found[id(kind)] = targets
                    done += 1 + len(facts.routing_key) // _LONG
                    if done > _WORD * WORDS:
                        yield
                        done, exchange, known = 0, None, own.known()
                    continue
            key = self._host, facts.exchange, facts.routing_key, *kind.more_keys
            targets = known.get(key)
            if targets is None and (targets := known.recall(key)) is None:
                its = _WORD * words(key[2:])
                if done and done + its > _WORD * WORDS:
                    yield
                    done, exchange, known = 0, None, own.known()
                    # What was bound meanwhile has ends of its own.
                    end = None if end is None else self._end(kind)
                targets, looks = self._look(key, kind, properties, end)
                done += its + _WORD * looks
            found[id(kind)] = targets
        if _BY_HEADERS in found.values() and not self.faults:
            yield from self._portions_by_headers(done // _WORD)

    def _all_by_ends(self) -> bool:
        """Finds all of it if that takes no more than a portion: keys alone decide, and where they end is known."""
        kinds = objects(self._kinds)
        facts = list(map(_FACTS, kinds.values()))
        keys, exchanges = list(map(_KEY_OF, facts)), set(map(_EXCHANGE_OF, facts))
        if len(exchanges) > 1 or any(map(_MORE_KEYS, kinds.values())):
            return False
        if len(keys) + sum(map(len, keys)) // _LONG > _WORD * WORDS:
            return False
        end_of = self._own.end_of(self._host, *exchanges)
        if not end_of or (targets := self._own.lead(list(map(end_of, keys)))) is None:
            return False
        if len(targets) == len(self._kinds):  # each is of another kind
            self._each = targets
        else:
            self._found = dict(zip(kinds, targets, strict=True))
        return True

    def targets(self) -> Sequence[Targets]:
        """Of each message, after all portions."""
        kinds, found = self._kinds, self._found
        if self._each:
            return self._each
        if len(found) == 1:
            return [found[id(kinds[0])]] * len(kinds)
        return list(map(found.__getitem__, map(id, kinds)))

    def _firsts(self) -> Iterator[tuple[Kind, bytes]]:
        """Each kind once, with the properties of its first message."""
        kinds, found = self._kinds, self._found
        count = 1 if are_alike(kinds) else len(kinds)
        for kind, properties in zip(kinds[:count], self._properties[:count], strict=True):
            if id(kind) not in found:
                yield kind, properties

    def _end(self, kind: Kind) -> object:
        end_of = self._own.end_of(self._host, kind.facts.exchange)
        return end_of(kind.facts.routing_key) if end_of else None

    def _look(self, key: _Key, kind: Kind, properties: bytes, end: object) -> tuple[Targets, int]:
        """Where the key leads, and how many looks that took."""
        found = self._own.evaluate(self._host, kind, properties)
        exchange = kind.facts.exchange
        if found.unknown_exchange:
            self.faults[kind] = unknown_exchange(self._host, exchange)
            return (), 0
        if found.internal:
            self.faults[kind] = internal_exchange(self._host, exchange)
            return (), found.looks
        targets = _BY_HEADERS if found.needs_headers else self._own.shared(found)
        self._own.remember(key, end, found, targets)
        return targets, found.looks

    def _portions_by_headers(self, done: int) -> Iterator[None]:
        each, own, known = [], self._own, self._own.known()
        for kind, properties in zip(self._kinds, self._properties, strict=True):
            targets = self._found[id(kind)]
            if targets is _BY_HEADERS:
                key = kind, properties
                its_own = known.get(key)
                if its_own is None and (its_own := known.recall(key)) is None:
                    its = words(kind.more_keys, properties)
                    if done and done + its > WORDS:
                        yield
                        done, known = 0, own.known()
                    route_of = own.evaluate(self._host, kind, properties)
                    done += its + route_of.looks
                    its_own = own.shared(route_of)
                    if len(properties) <= _LONGEST:
                        known.put(key, its_own, _ENTRY + len(properties) + _KIND + 8 * len(its_own))
                targets = its_own
            each.append(targets)
        self._each = each
