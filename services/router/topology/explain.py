"""Why a message goes where it goes: every exchange on its way, and the bindings that it follows from there."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from services.common.errors import NotFound
from services.common.topology.definitions import Exchange
from services.common.topology.exchanges.exchange_type import Binding, Destination
from services.common.topology.message import Message
from services.common.topology.predeclared import DEFAULT_EXCHANGE
from services.common.topology.source import Source
from services.router.topology import names
from services.router.topology.virtual_host import VirtualHost


class Via(enum.Enum):
    """What leads from an exchange to a destination."""

    BINDING = "binding"
    IMPLIED = "implied"  # every queue is bound to the default exchange by its name
    ALTERNATE = "alternate"  # no binding matched


@dataclass(frozen=True, slots=True)
class Hop:
    """From an exchange to a destination; for an alternate exchange, the binding is none that anybody made."""

    binding: Binding
    via: Via


@dataclass(frozen=True, slots=True)
class Visit:
    """An exchange that the message comes to: `hops` lead on from it, none when nothing matches."""

    name: str
    exchange: Exchange | None  # None: an alternate that does not exist
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """`visits` in the order in which the message comes to the exchanges; `queue_ids` without repetition."""

    visits: tuple[Visit, ...]
    queue_ids: tuple[int, ...]


def explain(host: VirtualHost, exchange: str, keys: Collection[str], message: Message) -> Explanation:
    """The way that `route` takes, with the reasons; raises NotFound for an exchange that is not there.

    No key comes twice. Much slower than `route`: it tries the bindings one by one.
    """
    if exchange not in host.sources:
        raise NotFound(f"no {names.called('exchange', exchange, host.name)}")
    visits: list[Visit] = []
    queues: dict[int, None] = {}
    seen = {exchange}
    pending = deque([exchange])
    while pending:
        visit = _visit(host, pending.popleft(), keys, message)
        visits.append(visit)
        for destination in (hop.binding.destination for hop in visit.hops):
            if isinstance(destination, int):
                queues[destination] = None
            elif destination not in seen:
                seen.add(destination)
                pending.append(destination)
    return Explanation(tuple(visits), tuple(queues))


def _visit(host: VirtualHost, name: str, keys: Collection[str], message: Message) -> Visit:
    if (source := host.sources.get(name)) is None:
        return Visit(name, None)
    found, _ = source.route(keys, message)
    if found:
        return Visit(name, source.definition, tuple(_hops(source, found, keys, message)))
    if source.alternate is None:
        return Visit(name, source.definition)
    return Visit(name, source.definition, (Hop(Binding(source.alternate), Via.ALTERNATE),))


def _hops(source: Source, found: set[Destination], keys: Collection[str], message: Message) -> Iterator[Hop]:
    if source.definition.name == DEFAULT_EXCHANGE:
        for key in keys:
            for destination in source.route((key,), message)[0]:
                yield Hop(Binding(destination, key), Via.IMPLIED)
        return
    for binding in source.bindings:
        # A type may choose among bindings that match, so the destination must be one that it chose.
        if binding.destination in found and _matches(source, binding, keys, message):
            yield Hop(binding, Via.BINDING)


def _matches(source: Source, binding: Binding, keys: Collection[str], message: Message) -> bool:
    """Whether the message would take the binding if there were no other: that holds for every exchange type."""
    alone = Source(source.definition, type(source.matcher)())
    alone.bind(binding)
    found, _ = alone.route(keys, message)
    return bool(found)
