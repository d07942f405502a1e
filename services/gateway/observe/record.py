"""What one client's messages go through, as far as a gateway sees it, for the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import add, attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, cast

from services.common.errors import AccessRefused, BrokerError, NotFound, Unavailable
from services.common.ledger import stages
from services.common.ledger.encoding import Mixture
from services.common.ledger.place import Keyed, LedgerPlace, Peer
from services.common.ledger.recorder import OFF, Recorder
from services.common.ledger.row_recorder import ALL, portions
from services.common.memo import Memo
from services.common.message import MessageFormat, format_named
from services.common.message.alike import are_alike, objects
from services.common.message.facts import EXCHANGE, KEY, Facts
from services.common.message.indexes import pick
from services.common.message.weight import weight
from services.common.topology.slots import SlotId
from services.rpc import ledger_pb2 as ledger

if TYPE_CHECKING:
    from services.common.clients.outbound import Targets
    from services.gateway.observe.client import Client
    from services.gateway.vocabulary import Publish
    from services.rpc.router_pb2 import QueueDefinition

_FACTS, _ADDRESS = attrgetter("facts"), itemgetter(EXCHANGE, KEY)
_EXCHANGE, _KEY = itemgetter(EXCHANGE), itemgetter(KEY)
_REMEMBERED = 4096  # places of one connection; beyond, it begins again
_NAMES = 256 << 10  # bytes of their names
_BASES = 1 << 20  # bytes of places without keys
_ROUTED = 4 << 20  # bytes of the places that messages are routed to
_PLACE = 150  # bytes, about
_BYTE = 256  # indexes that fit into one
_LONGEST_NAME = 255  # characters


def client_name(properties: Mapping[str, Any], user: str) -> str:
    """What the application calls itself (RabbitMQ's client property connection_name), or its user.

    No more than `_LONGEST_NAME` characters: each batch of the ledger says it for each queue of the connection.
    """
    name = properties.get("connection_name")
    return name[:_LONGEST_NAME] if isinstance(name, str) and name else user


class ClientRecord:
    """One for each connection, made when it is open; `on` is False where nothing is recorded."""

    def __init__(self, recorder: Recorder, here: LedgerPlace, queues: Mapping[SlotId, QueueDefinition]) -> None:
        """`here` is the connection, without any exchange or queue."""
        self.on = recorder.on
        self._recorder = recorder
        self._here = here
        self._queues = queues
        self._published: Memo[tuple[str, str], LedgerPlace] = Memo(_REMEMBERED, _NAMES)
        self._routed: Memo[tuple[str, str, Targets], list[LedgerPlace]] = Memo(_REMEMBERED, _ROUTED)
        self._bases: Memo[tuple[str, SlotId | None], LedgerPlace] = Memo(_REMEMBERED, _BASES)

    def received(self, publish: Publish, uids: range) -> Published:
        """What a request publishes was read whole."""
        return Published(self, publish, uids)

    # -------------------------------------------------------------- deliveries

    def consumer(self, queue_id: SlotId, tag: str) -> LedgerPlace:
        """Where deliveries for a consumer are sent; tag "": taken without one."""
        definition = self._queues.get(queue_id)
        if definition is None:
            return self._here._replace(consumer=tag)
        return self._here._replace(queue=definition.name, partition=definition.partition, consumer=tag)

    def sent(self, place: LedgerPlace, uids: Sequence[int]) -> None:
        """Deliveries were written to the socket."""
        self._recorder.record(ledger.SENT, place, uids)

    # -------------------------------------------------------------- places and ids

    def record(self, stage: int, place: LedgerPlace, uids: Sequence[int], *, reason: str = "", size: int = 0) -> None:
        """As Recorder says."""
        self._recorder.record(stage, place, uids, reason=reason, size=size)

    def record_each(self, stage: int, mixture: Mixture, uids: Sequence[int], *, reason: str = "") -> None:
        """As Recorder says."""
        self._recorder.record_each(stage, mixture, uids, reason=reason)

    def place(self, facts: Facts) -> LedgerPlace:
        """Where messages of an address are published."""
        key = facts.exchange, facts.routing_key
        place = self._published.get(key) or self._published.recall(key)
        if place is None:
            exchange, routing_key = key
            place = self._here._replace(exchange=exchange, routing_key=routing_key)
            self._published.put(key, place, len(exchange) + len(routing_key))
        return place

    def targets(self, place: LedgerPlace, queue_ids: Targets) -> list[LedgerPlace]:
        """Where messages go that were published there."""
        key = place.exchange, place.routing_key, queue_ids
        places = self._routed.get(key) or self._routed.recall(key)
        if places is None:
            definitions = [self._queues[queue_id] for queue_id in queue_ids if queue_id in self._queues]
            places = [place._replace(queue=each.name, partition=each.partition) for each in definitions]
            self._routed.put(key, places, len(place.routing_key) + _PLACE * (1 + len(places)))
        return places

    def known(self, queue_ids: Targets) -> Sequence[SlotId]:
        """Those whose queues are still there."""
        return [each for each in queue_ids if each in self._queues]

    def towards(self, place: Keyed, queue_id: SlotId) -> Keyed:
        """Where a message goes that was published there, to a queue that is known."""
        base, routing_key = place
        return self.at(base.exchange, queue_id), routing_key

    def keyed(self, published: Sequence[Facts]) -> list[Keyed]:
        """Where messages with these facts are published."""
        exchanges = list(map(_EXCHANGE, published))
        bases = {exchange: self.at(exchange) for exchange in set(exchanges)}
        if len(bases) == 1:
            return list(zip(repeat(bases[exchanges[0]]), map(_KEY, published), strict=False))
        return list(zip(map(bases.__getitem__, exchanges), map(_KEY, published), strict=True))

    def all_towards(self, places: Sequence[Keyed], queue_id: SlotId) -> list[Keyed]:
        """Where messages go that were published there, all of them to one queue that is known."""
        published, keys = zip(*places, strict=True)
        if are_alike(published):
            return list(zip(repeat(self.at(published[0].exchange, queue_id)), keys, strict=False))
        bases = {identity: self.at(base.exchange, queue_id) for identity, base in objects(published).items()}
        return list(zip(map(bases.__getitem__, map(id, published)), keys, strict=True))

    def at(self, exchange: str, queue_id: SlotId | None = None) -> LedgerPlace:
        """An exchange, or the way from it to a queue, without a routing key."""
        key = exchange, queue_id
        place = self._bases.get(key) or self._bases.recall(key)
        if place is None:
            place = self._here._replace(exchange=exchange)
            if queue_id:
                definition = self._queues[queue_id]
                place = place._replace(queue=definition.name, partition=definition.partition)
            self._bases.put(key, place, _PLACE + len(exchange) + len(place.queue))
        return place

    def names(self, its_format: MessageFormat, properties: Sequence[bytes]) -> Sequence[bytes]:
        """What names the messages that have these: of each, or one of all, or nothing."""
        distinct = objects(properties)
        names = [its_format.identifying(properties[0])] if len(distinct) == 1 else its_format.identifying_of(properties)
        return names if any(names) else ()

    def identify(self, name: str, uids: Sequence[int], names: Sequence[bytes]) -> None:
        """Messages in the format of that name have these, as `names` gives them."""
        if all(names):
            if names:
                self._recorder.identify(name, uids, names)
        elif any(names):
            found = [(uid, named) for uid, named in zip(uids, names, strict=True) if named]
            self._recorder.identify(name, [uid for uid, _ in found], [named for _, named in found])


class Published:
    """One request's messages, as they are told of; indexes are those of its columns."""

    __slots__ = ("_place", "_places", "_record", "_uids", "_which")

    def __init__(self, record: ClientRecord, publish: Publish, uids: range) -> None:
        """Tells that they were read whole. `publish` is not kept: its bodies may be gone long before its last word."""
        self._record = record
        self._uids = uids
        self._place: LedgerPlace | None = None  # of all
        self._places: list[Keyed] = []  # where they differ
        self._which: Sequence[int] = ()  # of them, for each message
        kinds = objects(publish.kinds)
        facts = list(map(_FACTS, kinds.values()))
        if _ADDRESS(facts[0]) == _ADDRESS(facts[-1]) and len(set(map(_ADDRESS, facts))) == 1:
            self._place = record.place(facts[0])
        elif len(kinds) == len(publish.kinds):
            self._places, self._which = record.keyed(facts), range(len(kinds))
        else:
            self._places = record.keyed(facts)
            numbers = dict(zip(kinds, range(len(kinds)), strict=True))
            which = map(numbers.__getitem__, map(id, publish.kinds))
            self._which = bytes(which) if len(kinds) <= _BYTE else list(which)
        self._received(publish)

    def _received(self, publish: Publish) -> None:
        """In portions, where it is much that names the messages."""
        properties, bodies, name = publish.properties, publish.bodies, publish.kinds[0].facts.format
        names = self._record.names(format_named(name), properties)
        sizes = [] if self._place else list(map(add, map(len, properties), map(len, bodies)))
        for some in portions(names):
            uids = self._uids if some is ALL else self._uids[some]
            self._record.identify(name, uids, names if some is ALL else names[some])
            if self._place:
                size = weight(properties[some], bodies[some])
                self._record.record(ledger.RECEIVED, self._place, uids, size=size)
            else:
                self._record.record_each(ledger.RECEIVED, self._mixture(some, sizes), uids)

    def _mixture(self, some: slice, sizes: list[int]) -> Mixture:
        if some is ALL:  # the places that other rows have too are encoded with these, once
            return Mixture(self._places, self._which, sizes)
        which, sizes = self._which[some], sizes[some]
        if isinstance(which, range):  # each has a place of its own
            return Mixture(self._places[some], range(len(which)), sizes)
        return Mixture(self._places, which, sizes)

    def _tell(self, stage: int, indexes: Sequence[int], reason: str = "") -> None:
        uids = pick(self._uids, indexes)
        if self._place:
            self._record.record(stage, self._place, uids, reason=reason)
        else:
            self._record.record_each(stage, Mixture(self._places, pick(self._which, indexes)), uids, reason=reason)

    def routed(self, targets: Sequence[Targets]) -> None:
        """They go to these queues."""
        if not self._place:
            self._routed_each(targets)
        elif are_alike(targets):
            for target in self._record.targets(self._place, targets[0]):
                self._record.record(ledger.ROUTED, target, self._uids)
        else:
            for its, indexes in _by_value(targets):
                for target in self._record.targets(self._place, its):
                    self._record.record(ledger.ROUTED, target, pick(self._uids, indexes))

    def _routed_each(self, targets: Sequence[Targets]) -> None:
        if are_alike(targets):
            for queue_id in self._record.known(targets[0]):
                mixture = Mixture(self._record.all_towards(self._places, queue_id), self._which)
                self._record.record_each(ledger.ROUTED, mixture, self._uids)
            return
        of_place = dict(zip(self._which, targets, strict=True))
        if list(map(of_place.__getitem__, self._which)) == list(targets):
            self._routed_by_place(of_place)
            return
        for its, indexes in _by_value(targets):
            which, uids = pick(self._which, indexes), pick(self._uids, indexes)
            for queue_id in self._record.known(its):
                places = self._record.all_towards(self._places, queue_id)
                self._record.record_each(ledger.ROUTED, Mixture(places, which), uids)

    def _routed_by_place(self, targets: Mapping[int, Targets]) -> None:
        """What has one place goes to the same queues: tells of the first of each place, then of the second, ..."""
        record = self._record
        queue_ids = [record.known(targets[number]) for number in range(len(self._places))]
        for turn in range(max(map(len, queue_ids))):
            numbers = [number for number, its in enumerate(queue_ids) if len(its) > turn]
            places = [record.towards(self._places[number], queue_ids[number][turn]) for number in numbers]
            which, uids = self._which, cast("Sequence[int]", self._uids)
            if len(numbers) < len(queue_ids):
                place_of = {number: place for place, number in enumerate(numbers)}
                indexes = [index for index, number in enumerate(which) if number in place_of]
                which, uids = [place_of[which[index]] for index in indexes], pick(uids, indexes)
            record.record_each(ledger.ROUTED, Mixture(places, which), uids)

    def returned(self, indexes: Sequence[int], reason: str = stages.NO_ROUTE) -> None:
        """They were sent back."""
        self._tell(ledger.RETURNED, indexes, reason)

    def unroutable(self, indexes: Sequence[int]) -> None:
        """They go nowhere, and their publisher is not told."""
        self._tell(ledger.DROPPED, indexes, stages.UNROUTABLE)

    def managed(self, indexes: Sequence[int]) -> None:
        """The management node has taken them: they go no further."""
        self._tell(ledger.DROPPED, indexes, stages.MANAGED)

    def confirmed(self, indexes: Sequence[int]) -> None:
        """The publisher was told that they are safe."""
        self._tell(ledger.CONFIRMED, indexes)

    def refused(self, indexes: Sequence[int], reason: str) -> None:
        """The publisher was told that they are not taken."""
        self._tell(ledger.REFUSED, indexes, reason)

    def failed(self, error: BrokerError) -> None:
        """They ended their session by what they asked for."""
        self.refused(range(len(self._uids)), _reason(error))

    def rolled_back(self) -> None:
        """Their transaction never was."""
        self._tell(ledger.ROLLED_BACK, range(len(self._uids)))


def _by_value(targets: Sequence[Targets]) -> Iterable[tuple[Targets, Sequence[int]]]:
    found: dict[Targets, list[int]] = {}
    for index, each in enumerate(targets):
        found.setdefault(each, []).append(index)
    return found.items()


NO_RECORD = ClientRecord(OFF, LedgerPlace(), {})


def here(client: Client, protocol: str) -> LedgerPlace:
    """Where a connection is whose virtual host is known."""
    return LedgerPlace(
        client.virtual_host,
        protocol=protocol,
        connection=client.name,
        client=client.client,
        peer=Peer(client.user, client.peer),
    )


def _reason(error: BrokerError) -> str:
    if isinstance(error, NotFound):
        return stages.NO_EXCHANGE
    if isinstance(error, AccessRefused):
        return stages.ACCESS_REFUSED
    return stages.UNAVAILABLE if isinstance(error, Unavailable) else stages.INVALID
