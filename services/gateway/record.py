"""What one client's messages go through, as far as a gateway sees it, for the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from services.common.errors import AccessRefused, BrokerError, NotFound, Unavailable
from services.common.ledger import stages
from services.common.ledger.place import Place
from services.common.ledger.recorder import OFF, Recorder
from services.common.memo import Memo
from services.common.message import format_named
from services.common.message.alike import are_alike, objects
from services.common.message.facts import Facts
from services.common.message.indexes import pick
from services.common.message.weight import weight
from services.rpc import ledger_pb2 as ledger

if TYPE_CHECKING:
    from services.common.clients.outbound import Targets
    from services.gateway.connection import Connection
    from services.gateway.vocabulary import Kind, Publish
    from services.rpc.router_pb2 import QueueDefinition

_REMEMBERED = 4096  # places of one connection; beyond, it begins again
_NAMES = 256 << 10  # bytes of their names
_ROUTED = 4 << 20  # bytes of the places that messages are routed to
_PLACE = 150  # bytes, about


def client_name(properties: Mapping[str, Any], user: str) -> str:
    """What the application calls itself (RabbitMQ's client property connection_name), or its user."""
    name = properties.get("connection_name")
    return name if isinstance(name, str) and name else user


class ClientRecord:
    """One for each connection, made when it is open; `on` is False where nothing is recorded."""

    def __init__(self, recorder: Recorder, here: Place, queues: Mapping[int, QueueDefinition]) -> None:
        """`here` is the connection, without any exchange or queue."""
        self.on = recorder.on
        self._recorder = recorder
        self._here = here
        self._queues = queues
        self._published: Memo[tuple[str, str], Place] = Memo(_REMEMBERED, _NAMES)
        self._routed: Memo[tuple[str, str, tuple[int, ...]], list[Place]] = Memo(_REMEMBERED, _ROUTED)

    def begin(self, publish: Publish, uids: range) -> Published:
        """What a request publishes is to be told of."""
        return Published(self, publish, uids)

    # -------------------------------------------------------------- deliveries

    def consumer(self, queue_id: int, tag: str) -> Place:
        """Where deliveries for a consumer are sent; tag "": taken without one."""
        definition = self._queues.get(queue_id)
        if definition is None:
            return self._here._replace(consumer=tag)
        return self._here._replace(queue=definition.name, partition=definition.partition, consumer=tag)

    def sent(self, place: Place, uids: Sequence[int]) -> None:
        """Deliveries were written to the socket."""
        self._recorder.record(ledger.SENT, place, uids)

    # -------------------------------------------------------------- places and ids

    def record(self, stage: int, place: Place, uids: Sequence[int], *, reason: str = "", size: int = 0) -> None:
        """As Recorder says."""
        self._recorder.record(stage, place, uids, reason=reason, size=size)

    def place(self, facts: Facts) -> Place:
        """Where messages of an address are published."""
        key = facts.exchange, facts.routing_key
        place = self._published.get(key) or self._published.recall(key)
        if place is None:
            exchange, routing_key = key
            place = self._here._replace(exchange=exchange, routing_key=routing_key)
            self._published.put(key, place, len(exchange) + len(routing_key))
        return place

    def targets(self, place: Place, queue_ids: Targets) -> list[Place]:
        """Where messages go that were published there."""
        key = place.exchange, place.routing_key, queue_ids
        places = self._routed.get(key) or self._routed.recall(key)
        if places is None:
            definitions = [self._queues[queue_id] for queue_id in queue_ids if queue_id in self._queues]
            places = [place._replace(queue=each.name, partition=each.partition) for each in definitions]
            self._routed.put(key, places, len(place.routing_key) + _PLACE * (1 + len(places)))
        return places

    def identify(self, name: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        """Messages have properties that may name them."""
        identifying = format_named(name).identifying
        distinct = objects(properties)
        if len(distinct) == 1:
            if named := identifying(properties[0]):
                self._recorder.identify(name, uids, [named])
            return
        names = {identity: identifying(each) for identity, each in distinct.items()}
        if any(names.values()):
            found = [(uid, named) for uid, each in zip(uids, properties, strict=True) if (named := names[id(each)])]
            self._recorder.identify(name, [uid for uid, _ in found], [named for _, named in found])


class Published:
    """One request's messages, by where they are published; indexes are those of its columns."""

    __slots__ = ("_places", "_publish", "_record", "_uids")

    def __init__(self, record: ClientRecord, publish: Publish, uids: range) -> None:
        self._record = record
        self._publish = publish
        self._uids = uids
        self._places = self._by_place()

    def _by_place(self) -> list[tuple[Place, Sequence[int]]]:
        kinds = self._publish.kinds
        place_of = {kind: self._record.place(kind.facts) for kind in objects(kinds).values()}
        places = dict.fromkeys(place_of.values())
        if len(places) == 1:
            return [(next(iter(places)), range(len(kinds)))]
        found: dict[Kind, list[int]] = {kind: [] for kind in place_of}
        for index, kind in enumerate(kinds):
            found[kind].append(index)
        return [(place_of[kind], indexes) for kind, indexes in found.items()]

    def _tell(self, stage: int, indexes: Sequence[int], reason: str = "") -> None:
        whole = len(indexes) == len(self._uids)
        chosen = () if whole or len(self._places) == 1 else frozenset(indexes)
        for place, its in self._places:
            some = its if whole else indexes if len(self._places) == 1 else [index for index in its if index in chosen]
            if some:
                self._record.record(stage, place, pick(self._uids, some), reason=reason)

    def received(self) -> None:
        """They were read whole."""
        properties, bodies = self._publish.properties, self._publish.bodies
        self._record.identify(self._publish.kinds[0].facts.format, self._uids, properties)
        for place, its in self._places:
            size = weight(pick(properties, its), pick(bodies, its))
            self._record.record(ledger.RECEIVED, place, pick(self._uids, its), size=size)

    def routed(self, targets: Sequence[Targets]) -> None:
        """They go to these queues."""
        for place, its in self._places:
            some = pick(targets, its)
            if are_alike(some):
                self._routed(place, some[0], its)
                continue
            by_target: dict[Targets, list[int]] = {}
            for index, each in zip(its, some, strict=True):
                by_target.setdefault(each, []).append(index)
            for each, indexes in by_target.items():
                self._routed(place, each, indexes)

    def _routed(self, place: Place, queue_ids: Targets, indexes: Sequence[int]) -> None:
        uids = pick(self._uids, indexes)
        for target in self._record.targets(place, queue_ids):
            self._record.record(ledger.ROUTED, target, uids)

    def returned(self, indexes: Sequence[int], reason: str = stages.NO_ROUTE) -> None:
        """They were sent back."""
        self._tell(ledger.RETURNED, indexes, reason)

    def unroutable(self, indexes: Sequence[int]) -> None:
        """They go nowhere, and nobody is told."""
        self._tell(ledger.DROPPED, indexes, stages.UNROUTABLE)

    def confirmed(self, indexes: Sequence[int]) -> None:
        """The publisher was told that they are safe."""
        self._tell(ledger.CONFIRMED, indexes)

    def refused(self, indexes: Sequence[int], reason: str) -> None:
        """The publisher was told that they are not taken."""
        self._tell(ledger.REFUSED, indexes, reason)

    def failed(self, error: BrokerError) -> None:
        """They ended their session by what they asked for."""
        self.received()
        self.refused(range(len(self._uids)), _reason(error))

    def rolled_back(self) -> None:
        """Their transaction never was."""
        self._tell(ledger.ROLLED_BACK, range(len(self._uids)))


NO_RECORD = ClientRecord(OFF, Place(), {})


def record_of(connection: Connection) -> ClientRecord:
    """That of a connection whose virtual host is known."""
    here = Place(
        connection.virtual_host,
        protocol=connection.engine.name,
        connection=connection.name,
        client=connection.client,
    )
    return ClientRecord(connection.broker.recorder, here, connection.broker.topology.queues)


def _reason(error: BrokerError) -> str:
    if isinstance(error, NotFound):
        return stages.NO_EXCHANGE
    if isinstance(error, AccessRefused):
        return stages.ACCESS_REFUSED
    return stages.UNAVAILABLE if isinstance(error, Unavailable) else stages.INVALID
