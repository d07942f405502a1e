"""A session of a connection, of any protocol: requests in order, deliveries under way, what is unsettled."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from services.common.containment import by_itself, contained
from services.common.errors import BrokerError
from services.common.telemetry.conventions import CONNECTION_LOST, SESSION_CLOSED
from services.common.topology.slots import SlotId
from services.gateway.answers import ANSWERED, Deliveries, Returned
from services.gateway.outcomes import PublishOutcome
from services.gateway.sessions.backlog import Arrived, Backlog, part
from services.gateway.sessions.consumer import Consumer, ConsumerState, GetHolder
from services.gateway.sessions.delivery_numbers import DeliveryNumbers
from services.gateway.sessions.inbound_links import InboundLinks
from services.gateway.sessions.link_requests import OF_LINKS, LinkRequests
from services.gateway.sessions.transactions import Transactions
from services.gateway.sessions.waiting import WaitingRequests, may_send
from services.gateway.vocabulary import CloseSession, Request, Room
from services.rpc.queue_pb2 import ABANDON, RESTORE

if TYPE_CHECKING:
    from services.gateway.sessions.client import Client
    from services.gateway.sessions.permitted import Permitted
    from services.gateway.sessions.reply_address import ReplyAddress

_TURN = 128 << 10  # bytes of its backlog that a session writes before it is another session's turn


class Session:
    """State between a session's requests; what each request does is in services/gateway/operations."""

    owns_queues = False  # whether the router may know queues that go with it; of few sessions: not in all of them
    _identity = ""  # the same: who asks the router for nothing needs none

    def __init__(self, number: int, connection: Client) -> None:
        self.number = number
        self.connection = connection
        self.broker = connection.broker
        self.consumers: dict[str, Consumer] = {}
        self.numbers = DeliveryNumbers()
        self.inbound = InboundLinks()
        self.next_tag = 1
        self.limit = 0  # prefetch of consumers to come
        self.shared_limit = 0  # over all consumers
        self.flowing = True  # neither its client nor its engine has deliveries wait
        self.transactions = Transactions()
        self.last_queue = ""
        self.replies: ReplyAddress | None = None
        self.get_holders: dict[SlotId, GetHolder] = {}
        self.closed = False
        self._parting = False  # no delivery is heard of any more: it is closed, or will be as soon as it is idle
        self.has_turn = False  # to write, among the sessions of the connection
        self._backlog = Backlog()
        self._waiting: WaitingRequests | None = None  # None: an empty deque takes much memory
        self._of_links: LinkRequests | None = None
        self._busy = False
        self._work: asyncio.Task[None] | None = None
        self.broker.sessions[self] = None

    @property
    def permitted(self) -> Permitted:
        return self.connection.permitted

    @property
    def identity(self) -> str:
        """What queues know it by: its number may be the next session's, while the router has not heard of its end."""
        self._identity = self._identity or str(self.broker.new_handle())
        return self._identity

    # -------------------------------------------------------------- requests, one after the other

    def handle(self, request: Request) -> None:
        """Carries out a request, now or when those before it are done."""
        if self._busy and not isinstance(request, Room):
            self._waiting = self._waiting or WaitingRequests(self.connection)
            self._parting = self._parting or isinstance(request, CloseSession)
            if not self._waiting.add(request):
                self.connection.hold(self)
            return
        self._carry_out(request)

    def _carry_out(self, request: Request) -> None:
        if request.link and type(request) in OF_LINKS:
            self._of_links = self._of_links or LinkRequests(self)
            self._of_links.handle(request)
        elif self._of_links and isinstance(request, CloseSession):
            self._parting = True
            self._of_links.then(lambda: self._carry_out(request))
        elif (work := self.start(request)) is not None:
            self.begin(request, work)

    def start(self, request: Request) -> Coroutine[Any, Any, Any] | None:
        """Gives what `finish` waits for, if it is not done at once."""
        try:
            return self.connection.carry_out(self, request)
        except BrokerError as error:
            self._fail(request, error)
        except Exception as fault:  # noqa: BLE001 - this request's, whatever it is
            self._fail(request, contained("a request", fault, request=type(request).__name__))
        return None

    async def finish(self, request: Request, work: Coroutine[Any, Any, Any]) -> None:
        """Answers a request when it is done."""
        try:
            result = await work
        except BrokerError as error:
            self._fail(request, error)
        except Exception as fault:  # noqa: BLE001 - this request's, whatever it is
            self._fail(request, contained("a request", fault, request=type(request).__name__))
        else:
            self._succeed(request, result)

    def begin(self, request: Request, work: Coroutine[Any, Any, Any]) -> None:
        """Carries out a request that is not done at once; `work` gives its answer."""
        self._busy = True
        self._work = self.connection.tasks.start(self._finish(request, work), name=type(request).__name__)

    async def idle(self) -> None:
        """Returns when all requests have been carried out."""
        while under_way := [work for work in self._under_way() if not work.done()]:
            await asyncio.wait(under_way)

    def _under_way(self) -> Iterator[asyncio.Task[None]]:
        if self._busy and self._work:
            yield self._work
        yield from self._of_links.tasks.values() if self._of_links else ()

    async def ended(self) -> None:
        """The same, and what it held is others' again; what a client only asked that is gone is not looked for."""
        if self._waiting and self.connection.lost:
            self._waiting.forget_questions()
        await self.idle()
        if not self.connection.lost:
            by_itself("confirming to a client", self.write_confirms)
        by_itself("closing a session", self.close)

    async def _finish(self, request: Request, work: Coroutine[Any, Any, Any]) -> None:
        await self.finish(request, work)
        self._busy = False
        while self._waiting and not self._busy:
            self._carry_out(self._waiting.next())
        if not self._busy:
            self._waiting = None
            self.relieve()
        self.connection.flush()

    def relieve(self) -> None:
        """Some of what waited is done: its client may send more, if the rest is not too much."""
        if not self._waiting and (not self._of_links or may_send(self.connection)):
            self.connection.release(self)

    def answer(self, request: Request) -> None:
        """Answers a request that did not hold up the session, such as a drain."""
        self._succeed(request, None)
        self.connection.flush_soon()

    def _succeed(self, request: Request, result: Any) -> None:  # noqa: ANN401 - as each request says
        if self.connection.lost or result is ANSWERED:
            return
        try:
            self.connection.engine.succeed(request, result)
            self._after(request)
            self.connection.take_pending()
        except Exception as fault:  # noqa: BLE001 - an answer that cannot be written
            self.connection.fault("answering a client", fault)

    def _after(self, request: Request) -> None:
        # Its deliveries are written only now, so that none overtakes the answer that names the consumer.
        consumer = self.consumers.get(getattr(request, "tag", "")) if self.consumers else None
        if consumer and not consumer.started:
            consumer.start()

    def _fail(self, request: Request, error: BrokerError) -> None:
        # Requests behind the failed one are not carried out, except for the client's own close.
        if self._waiting:
            self._waiting.forget(but=CloseSession, link=request.link)
        if self._of_links:
            self._of_links.forget(request.link)
        self.connection.fail(request, error)

    # -------------------------------------------------------------- deliveries

    def deliver(self, consumer: Consumer, arrived: Arrived) -> None:
        """Writes deliveries, or keeps them while the socket or the client's flow holds them back."""
        if self._is_unheard or consumer.state is ConsumerState.ENDED:
            self._give_back(consumer, arrived)
        elif not consumer.started:
            self._backlog.hold(consumer, arrived)
        elif self._backlog or not self.flowing or not self.connection.writable:
            self._backlog.add(consumer, arrived)
            self.connection.wants_to_write(self)
        elif within := self._within_limit(consumer, arrived):
            self._send(consumer, within)

    @property
    def _is_unheard(self) -> bool:
        """Whether nothing that is delivered reaches the client any more, though requests may be under way."""
        return self._parting or self.connection.parting or self.connection.lost

    def release(self, consumer: Consumer) -> None:
        """The client knows of the consumer now, or has given it credit: what was kept for it may be written."""
        self._backlog.release(consumer)
        if self._backlog:
            self.connection.wants_to_write(self)

    def write_parked(self) -> bool:
        """Writes some of the backlog; False when there is nothing more to write now."""
        while self._backlog and self.flowing and not self._parting:
            consumer, arrived = self._backlog.next(_TURN)
            within = self._within_limit(consumer, arrived)
            if within:
                self._send(consumer, within)
                return True
        return False

    @property
    def room(self) -> int:
        """How many more deliveries the limit over all consumers allows; what basic.get took does not count."""
        shown = sum(len(consumer.unsettled) for consumer in self.consumers.values() if consumer.browse)
        held = len(self.numbers) - shown - sum(holder.count for holder in self.get_holders.values())
        return self.shared_limit - held - self.transactions.settling

    def _within_limit(self, consumer: Consumer, arrived: Arrived) -> Arrived | None:
        """The deliveries that credit, or the limit over all consumers, allows; the rest goes back to the queue.

        Presettled deliveries cannot go back, and a browser's never left the queue: those wait for credit.
        """
        if (room := consumer.room) is None:
            return arrived
        count, allowed = len(arrived.bodies), max(room, 0)
        if count <= allowed:
            return arrived
        within, rest = arrived.split(allowed)
        if not consumer.gives_back:
            self._backlog.hold(consumer, rest)
        else:
            self._exceed(consumer, [rest, *self._backlog.take(consumer)])
        return within if allowed else None

    def keep_within_limit(self, consumer: Consumer) -> None:
        """What waits to be written beyond the limit of now goes back, as it would have when its turn came."""
        if (room := consumer.room) is None or not (consumer.gives_back and consumer.started):
            return
        within, beyond = part(self._backlog.take(consumer), max(room, 0))
        for each in within:
            self._backlog.add(consumer, each)
        if beyond:
            self._exceed(consumer, beyond)

    def _exceed(self, consumer: Consumer, those: Iterable[Arrived]) -> None:
        """All that has come behind it goes with it: none of that may overtake it when there is credit again."""
        for each in those:
            self.broker.settle(consumer.queue_id, RESTORE, each.uids)
            consumer.unsent(len(each.bodies), each.size)
        self.connection.wrote(consumer)

    def _send(self, consumer: Consumer, arrived: Arrived) -> None:
        count, numbers = len(arrived.bodies), self.numbers
        first = numbers.skip(count) if consumer.settled else numbers.add(consumer, arrived.uids)
        columns = arrived.facts, arrived.properties, arrived.bodies
        deliveries = Deliveries(consumer.tag, first, arrived.attempts, *columns, arrived.acquired)
        self.connection.engine.deliver(self.number, deliveries)
        self.broker.observer.sent(
            self.connection,
            self.connection.record,
            consumer.place,
            consumer.queue_id,
            arrived.uids,
            columns,
            first,
            settled=consumer.settled,
        )
        consumer.written(count, arrived.size)
        if consumer.timeout:
            consumer.timeout.sent(numbers.next)
        self.connection.wrote(consumer)

    def take_parked(self, consumer: Consumer) -> list[Arrived]:
        """Takes out what was kept for a consumer."""
        return self._backlog.take(consumer)

    def kept_for(self, consumer: Consumer) -> tuple[int, int]:
        """How many deliveries and bytes are kept for a consumer."""
        return self._backlog.kept(consumer)

    def end(self, consumer: Consumer) -> None:
        """Nothing more comes for a consumer. What was kept for it goes back to its queue.

        Presettled deliveries are written, though they were held back: they would be lost.
        """
        self.consumers.pop(consumer.tag, None)
        for arrived in self.take_parked(consumer):
            if consumer.settled and not self._is_unheard:
                self._send(consumer, arrived)
            else:
                self._give_back(consumer, arrived)
        consumer.answer_drain()

    def holdings(self) -> Iterator[tuple[Consumer | GetHolder, int]]:
        """Holders and uids of everything delivered and not settled, or settled by a transaction under way."""
        those: Iterable[tuple[Consumer | GetHolder, int]] = self.numbers
        if self.transactions:
            those = chain(those, ((each.holder, each.uid) for each in self.transactions.settlements))
        return ((holder, uid) for holder, uid in those if holder.takes)

    def close(self) -> None:
        """The session is gone: requeues what it held, ends its consumers."""
        if self.closed:
            return
        self.closed = self._parting = True
        if self._waiting:
            self._waiting.forget()
        if self._of_links:
            self._of_links.forget(0)
        self.broker.sessions.pop(self, None)
        for consumer, arrived in self._backlog.take_all():
            self._give_back(consumer, arrived)
        self._release_unsettled()
        self.transactions.roll_back()
        for consumer in list(self.consumers.values()):
            self.broker.abandon(consumer)
        self.consumers.clear()

    def _give_back(self, consumer: Consumer, arrived: Arrived) -> None:
        """Requeues deliveries that no client will see; presettled ones are lost."""
        if consumer.gives_back:
            self.broker.settle(consumer.queue_id, RESTORE, arrived.uids)
        elif consumer.takes:
            self.broker.observer.given_up(consumer.queue_id, CONNECTION_LOST, arrived.uids)

    def _release_unsettled(self) -> None:
        by_queue: dict[SlotId, list[int]] = defaultdict(list)
        for holder, uid in self.holdings():
            by_queue[holder.queue_id].append(uid)
            if isinstance(holder, Consumer) and holder.timeout:
                holder.timeout.stop()
        why = CONNECTION_LOST if self.connection.lost else SESSION_CLOSED
        for queue_id, uids in by_queue.items():
            self.broker.observer.given_up(queue_id, why, uids)
            self.broker.settle(queue_id, ABANDON, uids)
        self.numbers.take_all()

    def new_tag(self) -> str:
        """A consumer tag that the session has not used."""
        tag = f"amq.ctag-{self.connection.name}.{self.number}.{self.next_tag}"
        self.next_tag += 1
        return tag

    # -------------------------------------------------------------- what publishers hear

    def send_back(self, returned: Returned) -> None:
        """Returns messages to their publisher, before they are confirmed."""
        if not self.closed and not self.connection.lost:
            self.connection.engine.returned(self.number, returned)
            self.connection.wants_to_return()

    def confirm(self, link: int, first: int, indexes: Sequence[int], outcome: PublishOutcome) -> bool:
        """Something became of the publishes of a link at these indexes, counted from that with number `first`.

        False when the client cannot be told any more.
        """
        if self.closed or self.connection.lost:
            return False
        self.inbound.complete(link, first, indexes, outcome)
        self.connection.wants_to_confirm(self)
        return True

    def write_confirms(self) -> None:
        """Sends the client what has become known of its publishes."""
        if not self.closed and (dispositions := self.inbound.take()):
            self.connection.engine.confirm(self.number, dispositions)
