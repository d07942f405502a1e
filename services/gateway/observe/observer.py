"""All that looks on at a gateway: ledger, spans, captured messages, events. What happens is told here, once.

What is switched off costs one look at it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.common.bus.events import UNHEARD
from services.common.ledger import stages
from services.common.ledger.captures import OFF as NO_CAPTURES
from services.common.ledger.captures import Captures
from services.common.ledger.recorder import OFF
from services.common.message.indexes import condensed
from services.common.telemetry.tracer import OFF as NO_TRACER
from services.common.telemetry.tracer import Tracer
from services.common.topology.slots import SlotId
from services.gateway.observe.capture import Capture
from services.gateway.observe.events import closed, opened
from services.gateway.observe.record import ClientRecord, here
from services.gateway.observe.tracing.allowance import NO_LIMIT, Allowance
from services.gateway.observe.tracing.publishing import Publishing, TracedTicket
from services.gateway.observe.tracing.sampler import Sampler
from services.gateway.observe.tracing.sending import OUTCOMES, Sending

if TYPE_CHECKING:
    from services.common.bus.events import Events
    from services.common.clients.outbound import Messages, Ticket
    from services.common.clients.partition_table import PartitionTable
    from services.common.errors import BrokerError
    from services.common.ledger.place import LedgerPlace
    from services.common.ledger.recorder import Recorder
    from services.common.message.facts import Facts
    from services.gateway.observe.client import Client
    from services.gateway.observe.record import Published
    from services.gateway.observe.tracing.publishing import Asked, Reception
    from services.gateway.vocabulary import Kind, Publish
    from services.rpc import queue_pb2 as pb
    from services.rpc.router_pb2 import QueueDefinition


@dataclass(slots=True)
class Followed:
    """The messages of one request, from when they were routed; indexes are those of its columns."""

    recorded: Published | None = None
    traced: Reception | None = None

    def ticket(self, ticket: Ticket | None) -> Ticket | None:
        """In place of `ticket`, which it tells what became of them."""
        return TracedTicket(self.traced, ticket) if self.traced else ticket

    def unroutable(self, indexes: Sequence[int], returned: Sequence[int]) -> None:
        """No queue gets these; of those that were `returned` the publisher was told."""
        if self.traced:
            self.traced.unroutable(indexes, returned)
        if self.recorded:
            self.recorded.returned(returned)
            told = set(returned)
            self.recorded.unroutable([index for index in indexes if index not in told])

    def managed(self, indexes: Sequence[int]) -> None:
        """These are requests that the management node has taken."""
        if self.traced:
            self.traced.answered(indexes)
        if self.recorded:
            self.recorded.managed(indexes)

    def unready(self, indexes: Sequence[int]) -> None:
        """They were sent back, since no consumer was ready for them."""
        if self.recorded:
            self.recorded.returned(indexes, stages.NO_CONSUMERS)

    def confirmed(self, indexes: Sequence[int], refused: Collection[int] = ()) -> None:
        """The publisher was told that they are safe, but for those that were refused."""
        if not self.recorded:
            return
        if refused:
            self.recorded.refused(sorted(refused), stages.OVERFLOW)
            indexes = condensed([index for index in indexes if index not in refused])
        self.recorded.confirmed(indexes)

    def committed(self, count: int) -> None:
        """The transaction with these, `count` of them, is committed."""
        if self.recorded:
            self.recorded.confirmed(range(count))
        if self.traced:
            self.traced.committed()

    def rolled_back(self) -> None:
        """Their transaction never was."""
        if self.recorded:
            self.recorded.rolled_back()
        if self.traced:
            self.traced.rolled_back()

    def in_doubt(self) -> None:
        """What became of their transaction is not known. The ledger has only what queue processes tell."""
        if self.traced:
            self.traced.in_doubt()


class Observer:
    """One for all connections of a gateway."""

    def __init__(
        self,
        queues: Mapping[SlotId, QueueDefinition],
        table: PartitionTable,
        events: Events = UNHEARD,
        recorder: Recorder = OFF,
        tracer: Tracer = NO_TRACER,
        trace_ratio: float = 0.0,
        traced: Allowance = NO_LIMIT,
        captures: Captures = NO_CAPTURES,
    ) -> None:
        self.capture = Capture(captures)
        self.sampler = Sampler(trace_ratio, queues, traced)
        self._publishing = Publishing(tracer, self.sampler, queues, table)
        self._sending = Sending(tracer, queues)
        self._events = events
        self._recorder = recorder
        self._queues = queues

    # -------------------------------------------------------------- connections

    def opened(self, client: Client) -> None:
        """It has a virtual host now."""
        self._events.publish(opened(client))

    def closed(self, client: Client) -> None:
        """Its socket is gone."""
        self._events.publish(closed(client))

    def record_of(self, client: Client, protocol: str) -> ClientRecord:
        """What goes on record of one that has a virtual host, and speaks `protocol`."""
        return ClientRecord(self._recorder, here(client, protocol), self._queues)

    # -------------------------------------------------------------- what is published

    def asks(self, request: Publish) -> Asked | None:
        """The router is about to be asked where a request's messages go."""
        return self._publishing.ask(request)

    def not_routed(self, client: Client, request: Publish, asked: Asked | None, error: BrokerError) -> None:
        """They go nowhere, by what the router has said if it was asked."""
        self._publishing.refused(client, request, asked, error)

    def published(
        self,
        client: Client,
        record: ClientRecord,
        request: Publish,
        uids: range,
        messages: Messages,
        kinds: Sequence[Kind],
        asked: Asked | None,
    ) -> Followed:
        """A request's messages were read and are routed; `kinds` are those of them, each once."""
        recorded = record.received(request, uids) if record.on else None
        if recorded:
            recorded.routed(messages.targets)
        if self.capture.on:
            self.capture.published(client, request, uids)
        traced = None
        if self._publishing.concerns(kinds):
            traced = self._publishing.begin(client, request, messages, asked)
        return Followed(recorded, traced)

    # -------------------------------------------------------------- what is delivered

    def arrived(self, traced: pb.TracedDelivery, queue_id: SlotId) -> None:
        """A traced message has come from its queue, to be sent to a client."""
        self._sending.expect(traced, queue_id)

    def sent(
        self,
        client: Client,
        record: ClientRecord,
        place: LedgerPlace,
        queue_id: SlotId,
        uids: Sequence[int],
        columns: tuple[Sequence[Facts], Sequence[bytes], Sequence[bytes]],
        first: int,
        *,
        settled: bool,
    ) -> None:
        """Messages were written, numbered from `first`; `columns` are facts, properties and bodies."""
        if record.on:
            record.sent(place, uids)
        if self.capture.on:
            self.capture.sent(client, place, uids, columns)
        if self._sending.open:
            self._sending.written(client, queue_id, uids, first, tag=place.consumer, settled=settled)

    def settled(
        self,
        client: Client,
        queue_id: SlotId,
        outcome: pb.Outcome.ValueType,
        uids: Sequence[int],
        error: BrokerError | None = None,
    ) -> None:
        """A client has said what became of deliveries, and perhaps why."""
        if self._sending.open:
            self._sending.settled(client, queue_id, outcome, uids, error.text if error else "")

    def over(self, queue_id: SlotId, outcome: pb.Outcome.ValueType, uids: Sequence[int]) -> None:
        """A queue is told what became of deliveries."""
        if self._sending.open:
            self._sending.ended(queue_id, OUTCOMES[outcome], uids)

    def given_up(self, queue_id: SlotId, why: str, uids: Sequence[int]) -> None:
        """Deliveries ended by themselves, for a reason of the conventions."""
        if self._sending.open:
            self._sending.ended(queue_id, why, uids)
