"""Where a message had to go, and where it may have gone, when the topology changed around it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from tests.simulation.history import NEVER, Asked, History, Sent
from tests.simulation.routing import Topology, keys_of

_CHANGES = {"queue", "exchange", "delete_queue", "delete_exchange", "bind", "unbind"}
_OWN = {"own", "subscribe"}
_MOST = 5  # changes at once whose every combination is looked at; beyond, nothing is certain


@dataclass(frozen=True)
class Routes:
    """`must` holds in any case; `may` is what some order of the changes allows. Known: see `unknown`."""

    must: frozenset[str]
    may: frozenset[str]
    certainly_unknown: bool = False  # there was no such exchange


@dataclass(frozen=True)
class _Change:
    asked: Asked
    begins: int
    ends: int  # NEVER: perhaps it never was, or it happens at any later time


class RouteBook:
    """Of one virtual host."""

    def __init__(self, history: History, host: str, *, may_fade: bool = False) -> None:
        """`may_fade`: what is not durable may be gone, at any time."""
        self._history = history
        self._host = host
        self._may_fade = may_fade
        self._cache: dict[tuple[object, ...], Routes] = {}

    @cached_property
    def _changes(self) -> list[_Change]:
        found = []
        for asked in self._history.asked:
            if asked.what not in _CHANGES or asked.host != self._host:
                continue
            if asked.outcome == "ok" and asked.answered is not None:
                found.append(_Change(asked, asked.asked, asked.answered))
                if asked.attempts:
                    # One that was asked before in vain may be carried out a second time, whenever.
                    found.append(_Change(asked, asked.answered, NEVER))
            elif asked.outcome != "closed" or asked.attempts:
                found.append(_Change(asked, asked.asked, NEVER))
        return found

    @cached_property
    def everything(self) -> frozenset[str]:
        """Every queue that ever was, exclusive ones too."""
        queues = {each.asked.arguments["queue"] for each in self._changes if each.asked.what == "queue"}
        return frozenset(queues | self._named_own)

    @cached_property
    def _named_own(self) -> set[str]:
        return {each.arguments["queue"] for each in self._own}

    @cached_property
    def _own(self) -> list[Asked]:
        """Queues that come and go with what clients do otherwise: of a connection, or of a durable link."""
        return [each for each in self._history.asked if each.what in _OWN and each.host == self._host]

    @cached_property
    def _ended(self) -> dict[str, Asked]:
        """The last words of durable links, by their queues."""
        said = (each for each in self._history.asked if each.what == "unsubscribe" and each.host == self._host)
        return {each.arguments["queue"]: each for each in said}

    @cached_property
    def _own_bindings(self) -> list[Asked]:
        return [each for each in self._history.asked if each.what == "bind_own" and each.host == self._host]

    # -------------------------------------------------------------- questions

    def of(self, sent: Sent) -> Routes:
        """Where a publish went."""
        return self.between(sent.exchange, sent.key, sent.headers, sent.at, self.bound(sent))

    def bound(self, sent: Sent) -> int:
        """By when it was routed, at the latest."""
        known = [at for at in (sent.bound, sent.confirmed, sent.refused) if at is not None]
        if sent.transaction and sent.transaction.answered is not None:
            known.append(sent.transaction.answered)
        return min(known, default=NEVER)

    def between(self, exchange: str, key: str, headers: dict[str, object], first: int, last: int) -> Routes:
        """What is routed at some time from `first` to `last`."""
        certain = sum(1 for change in self._changes if change.ends < first)
        maybe = [change for change in self._changes if change.ends >= first and change.begins <= last]
        own = self._own_at(first, last)
        at = (
            certain, tuple(map(id, maybe)), exchange, key, json.dumps(headers, sort_keys=True, default=str), own,
        )  # fmt: skip
        if at not in self._cache:
            self._cache[at] = self._between(exchange, key, headers, first, maybe, own)
        return self._cache[at]

    def _between(
        self, exchange: str, key: str, headers: dict[str, object], first: int, maybe: list[_Change],
        own: tuple[frozenset[str], tuple[tuple[int, bool], ...]],
    ) -> Routes:  # fmt: skip
        if len(maybe) > _MOST:
            return Routes(frozenset(), self.everything)
        certain = [change for change in self._changes if change.ends < first]
        possible = [self._topology(certain, maybe, chosen) for chosen in product((False, True), repeat=len(maybe))]
        if self._may_fade:
            possible += [topology.faded() for topology in possible]
        found = [topology.route(exchange, key, headers) for topology in possible]
        routed = [queues or set() for queues in found]
        must, may = set.intersection(*routed), set.union(*routed)
        # Exclusive queues come and go on connections of their own: bound to nothing that has an alternate.
        must_too, may_too = self._own_routes(exchange, key, headers, certain, maybe, own)
        return Routes(frozenset(must | must_too), frozenset(may | may_too), all(queues is None for queues in found))

    def _topology(self, certain: list[_Change], maybe: list[_Change], chosen: Iterable[bool]) -> Topology:
        topology = Topology()
        happened = certain + [change for change, took in zip(maybe, chosen, strict=True) if took]
        for change in sorted(happened, key=lambda each: each.begins):
            topology.apply({**change.asked.arguments, "do": change.asked.what})
        return topology

    # -------------------------------------------------------------- exclusive queues

    def _own_at(self, first: int, last: int) -> tuple[frozenset[str], tuple[tuple[int, bool], ...]]:
        """Queues that were certainly there, and bindings that may have been: (index, certainly)."""
        there = frozenset(
            each.arguments["queue"]
            for each in self._own
            if each.answered is not None
            and each.outcome == "ok"
            and each.answered < first
            and not (each.arguments["queue"] in self._ended and self._ended[each.arguments["queue"]].asked <= last)
        )
        bindings = tuple(
            (index, each.outcome == "ok" and each.answered is not None and each.answered < first)
            for index, each in enumerate(self._own_bindings)
            if each.asked <= last and not self._was_ended(each.arguments["to"], first)
        )
        return there, bindings

    def _was_ended(self, queue: str, before: int) -> bool:
        ended = self._ended.get(queue)
        return ended is not None and ended.answered is not None and ended.answered < before

    def _own_routes(
        self, exchange: str, key: str, headers: dict[str, object], certain: list[_Change], maybe: list[_Change],
        own: tuple[frozenset[str], tuple[tuple[int, bool], ...]],
    ) -> tuple[set[str], set[str]]:  # fmt: skip
        there, bindings = own
        may: set[str] = set()
        must: set[str] = set()
        if not exchange:
            may = {each.arguments["queue"] for each in self._own if each.arguments["queue"] in keys_of(key, headers)}
            return may & there, may
        if not bindings:
            return must, may
        for chosen in product((False, True), repeat=len(maybe)):
            found = self._with_own(self._topology(certain, maybe, chosen), bindings).route(exchange, key, headers)
            may |= self._named_own.intersection(found or ())
        if not maybe:
            sure = tuple(each for each in bindings if each[1])
            topology = self._with_own(self._topology(certain, [], ()), sure)
            must = there.intersection(topology.route(exchange, key, headers) or ())
            if self._may_fade:
                must &= topology.faded().route(exchange, key, headers) or set()
        return must, may

    def _with_own(self, topology: Topology, bindings: tuple[tuple[int, bool], ...]) -> Topology:
        for each in self._own:
            topology.apply({**each.arguments, "do": "own"})
        for index, _ in bindings:
            topology.apply({**self._own_bindings[index].arguments, "do": "bind"})
        return topology
