"""One client's connection: moves bytes between socket and engine, and carries requests to the broker and back.

The socket decides over the backlog. While it does not take what is written, deliveries stay with their sessions and no
credit is granted; when it drains, sessions write in turn, and the session that is next is remembered. While the queues
do not take what is published, the socket is read no further.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import structlog

from services.common.clients.pressure import Congestion, Pressure
from services.common.containment import contained, for_each
from services.common.errors import BrokerError, ConnectionForced, InternalError
from services.common.runtime import Tasks
from services.common.topology.slots import SlotId
from services.gateway import vocabulary as v
from services.gateway.connections.blocked import CONSUMERS_FIRST, Blocked
from services.gateway.connections.client_socket import ClientSocket
from services.gateway.connections.farewell import Farewell
from services.gateway.connections.large_reads import FULL
from services.gateway.connections.login import Login
from services.gateway.connections.opening import begin_session, open_connection
from services.gateway.connections.whose import whose
from services.gateway.observe.record import NO_RECORD
from services.gateway.operations import OPERATIONS, carry_out, carry_out_of_connection
from services.gateway.sessions.session import Session
from services.gateway.transport.address import GONE, peer_of

if TYPE_CHECKING:
    from services.gateway.connections.listener import Listener
    from services.gateway.protocols.dealings import Received
    from services.gateway.protocols.engine import Engine
    from services.gateway.sessions.broker import Broker
    from services.gateway.sessions.consumer import Consumer
    from services.gateway.sessions.permitted import Permitted

log = structlog.get_logger()

_TURN_OF_OTHERS = "the turn of others"  # a reason to hold
_GETS = 4  # basic.get requests at a time: each may be answered with a message of the largest size


class Connection(ClientSocket):
    """Made by the listener for each accepted socket."""

    # Seldom set, so on the class: the 30th attribute of an instance would cost each connection a kilobyte.
    owns_queues = False
    tells_publisher = False
    spares: frozenset[SlotId] = frozenset()
    parting = False  # the client has said goodbye: it is sent no deliveries any more
    _broken = False  # it ends because of a fault of ours

    def __init__(self, listener: Listener, engine: Engine, name: str) -> None:
        super().__init__(listener)
        self.engine = engine
        self.name = name  # unique in the cluster: the owner of exclusive queues
        self.user = self.virtual_host = self.peer = self.peer_host = ""
        self.permitted = cast("Permitted", None)  # what its user may do; set when it has signed in
        self.client = ""  # the application's name for itself, or its user
        self.record = NO_RECORD
        self.sessions: dict[int, Session] = {}
        self.tasks = Tasks()
        self.gets = asyncio.Semaphore(_GETS)
        self.waiting = 0  # bytes of requests that wait behind others, of all sessions
        self.login = Login(self)
        self._turns: dict[Session, None] = {}  # sessions that wait to write
        self._hungry: dict[Consumer, None] = {}  # consumers that may be due credit
        self._to_confirm: dict[Session, None] = {}
        self.blocked = Blocked(self)
        self.timers: list[asyncio.TimerHandle] = []
        self._farewell = Farewell(self)

    @property
    def broker(self) -> Broker:
        return self.listener.broker

    # -------------------------------------------------------------- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.speak_over(transport)
        self.peer, self.peer_host = peer_of(transport)
        self.listener.doors.come(self)
        self.loop = asyncio.get_running_loop()
        self.last.begin(self.loop.time())
        self.timers.append(self.loop.call_later(self.listener.settings.handshake_timeout, self._too_slow))
        if self.peer_host == GONE:  # what it sent before its reset must not be read
            self.cut_off()

    def data_received(self, data: Received) -> None:
        self.last.read = self.loop.time()
        self.rest.read(self, data)
        if (len(data) >= FULL or (self.reads_much and not self.rest.large)) and not self.lost:
            self.hold(_TURN_OF_OTHERS)
            self.read_much(much=(self.rest.large > 0 or self.rest.has_more) and self.virtual_host != "")
            self.loop.call_soon(self.release, _TURN_OF_OTHERS)

    def carry_out_all(self, data: Received) -> list[v.Request]:
        """Carries out the requests in `data`, or more of what was read before; gives the requests that there were."""
        requests: list[v.Request] = []
        try:
            requests = self.engine.receive(data)
            for request in requests:
                self._handle(request)
            self.listener.incoming.note(self, self.engine.incomplete)
            if self.engine.closing:
                self._farewell.expect()
        except Exception as fault:  # noqa: BLE001 - this client's, whatever it is
            self.fault("reading what a client sent", fault)
        self.flush()
        if self._unread:
            self._unread.read()
        return requests

    def go_on(self) -> None:
        """As ClientSocket says."""
        self.rest.look(self)

    def connection_lost(self, failure: Exception | None) -> None:
        self.login.end(str(failure or "end of stream"))
        self.lost = self.closing = True
        self._waits_no_more()
        self.listener.outgoing.forget(self._transport)
        for timer in self.timers:
            timer.cancel()
        if self.virtual_host:
            self.broker.observer.closed(self)
            self.broker.publisher.forget(self)
        self.listener.forget(self)
        self.listener.tasks.start(self._clean_up(), name=f"clean up {self.name}")

    async def _clean_up(self) -> None:
        try:
            await self.end_sessions()
        finally:  # also when the gateway stops, and waits no longer
            await self.tasks.stop()

    async def end_sessions(self) -> None:
        """Carries out what was read (a client may publish and close at once), then closes each session."""
        await asyncio.gather(*(session.ended() for session in self.sessions.values()))
        sessions, self.sessions = self.sessions, {}
        for_each("closing a session", sessions.values(), Session.close)
        if self.owns_queues:
            await self.broker.exclusive.delete(self)

    # -------------------------------------------------------------- writing

    def flush(self) -> None:
        """Writes what the engine has; lets sessions write what they kept; grants what consumers are due."""
        if self.lost:
            return
        try:
            self._flush()
        except Exception as fault:  # noqa: BLE001 - this client's, whatever it is
            self.fault("writing to a client", fault)

    def _flush(self) -> None:
        if self._to_confirm:
            self._confirm()
        if self.engine.asks:  # what it was given to send has caused requests
            self.take_pending()
        self.write()
        if self.parting:
            return  # deliveries that wait go back to the queues
        while self._turns and self.writable:
            self._turns.pop(session := next(iter(self._turns)))
            session.has_turn = session.write_parked()
            if session.has_turn:
                self._turns[session] = None
            self.write()
        if self._hungry and self.writable:
            for consumer in self._hungry:
                consumer.grant()
            self._hungry.clear()

    def flush_soon(self) -> None:
        """Flushes at the end of this turn, or of the present frame of a queue process: once for all until then."""
        self.broker.flush_soon(self)

    def _confirm(self) -> None:
        for session in self._to_confirm:
            session.write_confirms()
        self._to_confirm.clear()

    def wants_to_write(self, session: Session) -> None:
        """A session keeps deliveries until it is its turn to write."""
        if not session.has_turn:
            session.has_turn = True
            self._turns[session] = None
        self.flush_soon()

    def wants_to_confirm(self, session: Session) -> None:
        """Publishes of a session became safe."""
        self._to_confirm[session] = None
        self.flush_soon()

    def wants_to_return(self) -> None:
        """Messages are returned to the client, which is read no further while it does not read them."""
        if not self.writable:
            self.hold(self)
        self.flush_soon()

    def wrote(self, consumer: Consumer) -> None:
        """A consumer may be due credit, once the socket takes what was written."""
        self._hungry[consumer] = None
        self.last.used = self.loop.time()
        self.flush_soon()

    def cancelled(self, consumer: Consumer, *, stolen: bool = False, fault: BrokerError | None = None) -> None:
        """The broker ended a consumer; its client is told."""
        if not self.lost:
            self.engine.cancelled(consumer.session.number, consumer.tag, stolen=stolen, fault=fault)
            self.flush_soon()

    def congested(self, pressure: Pressure) -> None:
        """Holds the client back as the last publish's answer demands."""
        reason = pressure.state, pressure.link  # each process says for itself when there is room
        if self.lost:
            return
        if pressure.state is Congestion.BLOCKED:
            self.blocked.block(reason, CONSUMERS_FIRST)
        else:
            self.hold(reason)
        self.broker.publisher.when_relieved(pressure, self, lambda: self.blocked.unblock(reason))

    # -------------------------------------------------------------- requests

    def _handle(self, request: v.Request) -> None:
        if OPERATIONS[type(request)].of_connection:
            carry_out_of_connection(self, request)
        elif session := self.sessions.get(request.session):
            session.handle(request)

    def carry_out(self, session: Session, request: v.Request) -> Coroutine[Any, Any, Any] | None:
        """Begins a request of a session, when it is its turn; see services/gateway/operations."""
        return carry_out(session, request)

    open = open_connection
    open_session = begin_session

    def fail(self, request: v.Request, error: BrokerError, *, logged: bool = False) -> None:
        """Ends what the error ends, and tells the client; the log too, unless it says enough of such errors already."""
        self.closing, kinds = self.closing or logged, {"request": type(request).__name__, "kind": type(error).__name__}
        if not logged:
            self.tell("refused, its client has gone" if self.lost else "request refused", error=error.text, **kinds)
        if not self.lost:
            self.engine.fail(request, error)
            self.take_pending()
            self.flush_soon()

    def tell(self, event: str, **more: object) -> None:
        """Logs an event. Events of peers that have not signed in are limited: any peer can cause them."""
        say = log.info if self.virtual_host else partial(self.listener.few.say, log.info)
        say(event, **{**whose(self), **more})

    def fault(self, what: str, fault: Exception) -> None:
        """A fault concerns this client: it is told, and its connection ends; others go on.

        What it has not settled goes back to the queues, so nothing is lost.
        """
        error = contained(what, fault, connection=self.name, peer=self.peer)
        if not self._broken and not self.lost:
            self._broken = True
            for_each("ending a connection", (InternalError(error.text),), self._end_by, lambda *_: self.abort())

    def _end_by(self, error: BrokerError) -> None:
        self.engine.close(error)
        self.take_pending()
        self.write()
        self.tasks.start(self.end_sessions(), name="end sessions")

    def take_pending(self) -> None:
        """Carries out requests that the engine had held back until an answer, or the end of a session."""
        for request in self.engine.pending_requests():
            self._handle(request)
        if self.engine.closing:
            self._farewell.expect()
        self.rest.look(self)

    def closes(self, request: v.Close) -> None:
        """The client closes the connection, or the engine has ended it."""
        self._farewell.say(request)

    def will_close(self, request: v.EndSessions) -> None:
        """The engine closes the connection as soon as that is answered."""
        self._farewell.prepare(request)

    def end_session(self, session: Session, request: v.CloseSession) -> None:
        """The requests of a session have been carried out: closes it, after the confirms that are known."""
        if request.reason:
            self.tell("session ended", session=session.number, reason=request.reason)
        if self.sessions.get(session.number) is session:
            del self.sessions[session.number]
        self.release(session)
        if session in self._to_confirm:
            del self._to_confirm[session]
            session.write_confirms()
        session.close()
        if not self.lost:
            self.engine.succeed(request)

    # -------------------------------------------------------------- the end

    def _too_slow(self) -> None:
        self.tell("handshake took too long")
        self.cut_off()

    def shut_down(self, reason: str) -> None:
        """The broker ends the connection: tells the client so (connection.close 320)."""
        if self.virtual_host:
            self.engine.close(ConnectionForced(reason))
            if self.engine.closing:  # else it closes when what the client has asked for is answered
                self._farewell.expect()
            self.flush()
        else:
            self.part()
