"""Publishers of persistent messages wait while the store cannot write them: they are told why, and read no further.

As RabbitMQ's disk alarm, but only for connections that publish persistent messages to durable queues, or wait for
confirms of such: transient messages go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from services.common.containment import for_each
from services.common.topology.slots import SlotId
from services.gateway.observe.tracing.publishing import TracedTicket
from services.gateway.sessions.publish_ticket import PublishTicket

if TYPE_CHECKING:
    from services.common.clients.outbound import Attempt, Messages
    from services.common.clients.partition_table import PartitionTable
    from services.common.clients.publisher import Publisher
    from services.gateway.sessions.client import Client
    from services.rpc.router_pb2 import QueueDefinition


class Unwritable:
    """Follows what the store says of its disk when it renews leases."""

    def __init__(self, table: PartitionTable, publisher: Publisher, queues: Mapping[SlotId, QueueDefinition]) -> None:
        self.now = False
        """Whether the store can write nothing at the moment."""
        self._table = table
        self._publisher = publisher
        self._queues = queues
        self._held: WeakKeyDictionary[Client, None] = WeakKeyDictionary()  # the first to wait goes on first
        table.listeners.append(self._heard)

    @staticmethod
    def kept(messages: Messages) -> list[SlotId]:
        """The queues of the persistent messages."""
        columns = zip(messages.facts, messages.targets, strict=True)
        return list({queue_id: None for facts, targets in columns if facts.persistent for queue_id in targets})

    def published(self, connection: Client, queue_ids: Sequence[SlotId]) -> None:
        """A connection has published persistent messages meanwhile: it waits, if any of the queues is durable.

        One that waits already may be read on, until it has sent too much: that is looked at each time.
        """
        if connection.lost:
            return
        if any((queue := self._queues.get(queue_id)) and queue.durable for queue_id in queue_ids):
            self._held[connection] = None
            connection.blocked.block(self, self._table.unwritable)

    def _heard(self) -> None:
        before, self.now = self.now, bool(self._table.unwritable)
        if self.now and not before:
            for_each("telling who waits for the store", list(self._publisher.under_way()), self._waits)
        elif before and not self.now:
            held, self._held = list(self._held), WeakKeyDictionary()
            for_each("letting a publisher go on", held, lambda connection: connection.blocked.unblock(self))

    def _waits(self, attempt: Attempt) -> None:
        ticket = attempt.delivery.ticket
        if isinstance(ticket, TracedTicket):
            ticket = ticket.ticket
        if isinstance(ticket, PublishTicket):
            self.published(ticket.session.connection, self.kept(attempt.messages))
