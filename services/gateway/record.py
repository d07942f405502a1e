"""What one client's messages go through, as far as a gateway sees it, for the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from services.common.errors import AccessRefused, BrokerError, NotFound, Unavailable
from services.common.ledger import stages
from services.common.ledger.place import Place
from services.common.ledger.recorder import OFF, Recorder
from services.common.memo import Memo
from services.common.message import format_named
from services.common.message.weight import weight
from services.rpc import ledger_pb2 as ledger

if TYPE_CHECKING:
    from services.gateway.connection import Connection
    from services.gateway.vocabulary import Publish
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

    # -------------------------------------------------------------- publishes

    def received(self, publish: Publish, uids: Sequence[int], size: int) -> None:
        """A run was read whole; `size` is that of properties and bodies."""
        properties = publish.properties
        shared = properties.count(properties[0]) == len(properties)
        self._identify(publish.format, uids, properties[:1] if shared else properties)
        self._recorder.record(ledger.RECEIVED, self._place(publish), uids, size=size)

    def routed(self, publish: Publish, uids: Sequence[int], queue_ids: tuple[int, ...]) -> None:
        """It goes to these queues."""
        key = (publish.exchange, publish.routing_key, queue_ids)
        places = self._routed.get(key)
        if places is None:
            places = self._targets(self._place(publish), queue_ids)
            self._routed.put(key, places, len(publish.routing_key) + _PLACE * (1 + len(places)))
        for place in places:
            self._recorder.record(ledger.ROUTED, place, uids)

    def returned(self, publish: Publish, uids: Sequence[int], reason: str = stages.NO_ROUTE) -> None:
        """It was sent back."""
        self._recorder.record(ledger.RETURNED, self._place(publish), uids, reason=reason)

    def unroutable(self, publish: Publish, uids: Sequence[int]) -> None:
        """It goes nowhere, and nobody is told."""
        self._recorder.record(ledger.DROPPED, self._place(publish), uids, reason=stages.UNROUTABLE)

    def confirmed(self, publish: Publish, uids: Sequence[int]) -> None:
        """The publisher was told that it is safe."""
        self._recorder.record(ledger.CONFIRMED, self._place(publish), uids)

    def refused(self, publish: Publish, uids: Sequence[int], reason: str) -> None:
        """The publisher was told that it is not taken."""
        self._recorder.record(ledger.REFUSED, self._place(publish), uids, reason=reason)

    def failed(self, publish: Publish, uids: Sequence[int], error: BrokerError) -> None:
        """It ended its session by what it asked for."""
        self.received(publish, uids, weight(publish.properties, publish.bodies))
        self.refused(publish, uids, _reason(error))

    def rolled_back(self, publish: Publish, uids: Sequence[int]) -> None:
        """Its transaction never was."""
        self._recorder.record(ledger.ROLLED_BACK, self._place(publish), uids)

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

    def _place(self, publish: Publish) -> Place:
        key = (publish.exchange, publish.routing_key)
        place = self._published.get(key)
        if place is None:
            exchange, routing_key = key
            place = self._here._replace(exchange=exchange, routing_key=routing_key)
            self._published.put(key, place, len(exchange) + len(routing_key))
        return place

    def _targets(self, place: Place, queue_ids: Iterable[int]) -> list[Place]:
        definitions = [self._queues[queue_id] for queue_id in queue_ids if queue_id in self._queues]
        return [place._replace(queue=each.name, partition=each.partition) for each in definitions]

    def _identify(self, name: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        message_format = format_named(name)
        identifying = message_format.identifying
        named = list(map(identifying, properties))
        if not any(named):
            return
        if len(properties) == 1:
            self._recorder.identify(name, uids, named)
        else:
            found = [(uid, each) for uid, each in zip(uids, named, strict=True) if each]
            self._recorder.identify(name, [uid for uid, _ in found], [each for _, each in found])


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
