"""The engine of AMQP 1.0: frames in, requests out; answers and deliveries in, frames out. See protocols.engine.

It takes the stream apart and gives each frame to what it belongs to: the connection's own to `Connection`, all else to
the session of its channel. Errors come back here and become a close.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from services.common.errors import BrokerError, CommandInvalid, LinkStolen, NotImplementedHere, Reach, SyntaxFault
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.values import Described
from services.gateway.answers import Deliveries, Returned
from services.gateway.outcomes import PublishDisposition
from services.gateway.protocols.amqp_1_0 import frames
from services.gateway.protocols.amqp_1_0.conditions import FramingError
from services.gateway.protocols.amqp_1_0.connection import AMQP_HEADER, SASL_HEADER, Amqp10Connection, ConnectionState
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.amqp_1_0.peer import PORTION, Peer
from services.gateway.protocols.amqp_1_0.performatives import Begin, Transfer
from services.gateway.protocols.amqp_1_0.session import Session
from services.gateway.protocols.amqp_1_0.transfer_reader import transfer_in
from services.gateway.protocols.dealings import Received
from services.gateway.protocols.limits import Limits
from services.gateway.protocols.openings import begins
from services.gateway.protocols.producing import Producing
from services.gateway.protocols.stream_engine import MOST_EFFORT, StreamEngine
from services.gateway.vocabulary import Close, Credit, EndSessions, Open, Publish, Request, Settle

_UNANSWERED: Final = (Publish, Settle, Credit)
_ON_ITS_WAY: Final = 1 << 20  # bytes of messages that a peer may have sent before it heard that it has no credit
_BYTES_PER_MICROSECOND: Final = 2  # of a performative, …
_OF_TRANSFERS: Final = 16  # … but for usual transfers, whose messages count as well: they are to be handed on together
_BEFORE_OPEN: Final = 8192  # bytes of a frame: section 2.4.1 says 512, and tokens of SASL may be longer


class Amqp10Engine(StreamEngine):
    """One connection's AMQP. See services.gateway.protocols.engine."""

    name = "AMQP 1.0"

    LIMITS: ClassVar[type[Limits]] = Amqp10Limits

    def __init__(self, limits: Amqp10Limits, mechanisms: Sequence[str]) -> None:
        """`mechanisms` are the SASL mechanisms that are offered, best first."""
        self._peer = Peer(limits, mechanisms)
        self._connection = Amqp10Connection(self._peer)
        self._sessions: dict[int, Session] = {}  # by channel
        self._ending: dict[int, list[Session]] = {}  # before them on their channels, and not answered yet
        super().__init__(self._peer, self._connection, frames.BEAT)

    @staticmethod
    def begins(opening: bytes) -> bool | None:
        """As Engine says."""
        return begins((AMQP_HEADER, SASL_HEADER), opening)

    # -------------------------------------------------------------- from the peer

    def _parse(self, received: Received) -> None:
        data, position, needed = bytes(received), 0, frames.HEAD.size
        while self._connection.wants_header and position < len(data):
            taken = self._connection.header(data[position:])
            position += taken
            if not taken:
                break
        if not self._connection.wants_header:
            position, needed = self._parse_frames(data, position)
        self._keep(data[position:], needed)

    def _parse_frames(self, data: bytes, position: int) -> tuple[int, int]:
        """Handles whole frames; gives where it stopped and how many bytes are needed from there to go on."""
        end, connection, requests = len(data), self._connection, self._peer.requests
        while end - position >= frames.HEAD.size:
            if connection.state.waits_for_broker or connection.wants_header or not connection.state.reads:
                break
            size, offset, kind, channel = frames.HEAD.unpack_from(data, position)
            if fault := self._fault_of(size, offset, kind):
                self._end(fault)
                break
            if position + size > end:
                return position, size
            if len(requests) >= PORTION or self._peer.effort >= MOST_EFFORT:
                self.unread = True
                return position, 0
            self._frame(channel, data[position + 4 * offset : position + size])
            position += size
        return position, frames.HEAD.size

    def _fault_of(self, size: int, offset: int, kind: int) -> BrokerError | None:
        """Why such a head is none (section 2.3.1)."""
        largest = self._peer.limits.frame_max if self._connection.is_opened else _BEFORE_OPEN
        if not frames.HEAD.size <= 4 * offset <= size <= max(largest, frames.MIN_MAX_FRAME_SIZE):
            return FramingError(f"no frame: {size} bytes, data behind {4 * offset}")
        if kind != self._connection.frame_type and not self._connection.state.is_over:
            return FramingError(f"a frame of type {kind} while waiting for {self._connection.state.value}")
        return None

    def _frame(self, channel: int, body: bytes) -> None:
        self._peer.effort += 1
        try:
            if not body:
                self._beat_came()
                return
            usual = transfer_in(body)
            performative, end = usual or _read(body)
            self._peer.effort += end // (_OF_TRANSFERS if usual else _BYTES_PER_MICROSECOND)
            self._performative(channel, performative, body[end:])
        except BrokerError as error:
            self._end(error)

    def _beat_came(self) -> None:
        """Section 2.4.5."""
        if self._beats_too_early():
            raise FramingError("too many empty frames before the connection is open")

    def _performative(self, channel: int, what: Composite, payload: bytes) -> None:
        connection = self._connection
        if type(what) not in Session.PERFORMATIVES and not isinstance(what, Begin):
            connection.performative(what)
            if not connection.state.reads:
                self._drop()
        elif connection.state is ConnectionState.RUNNING:
            self._of_session(channel, what, payload)
        elif not connection.state.is_over:
            raise CommandInvalid(f"{what.symbol} before the connection is open")

    def _of_session(self, channel: int, what: Composite, payload: bytes) -> None:
        session = self._sessions.get(channel)
        if isinstance(what, Begin):
            self._begin(channel, what, session)
        elif session is None:
            raise CommandInvalid(f"{what.symbol} on channel {channel}, on which no session has begun")
        else:
            session.performative(what, payload)

    def _begin(self, channel: int, begin: Begin, session: Session | None) -> None:
        if channel > self._peer.channel_max:
            raise FramingError(f"channel {channel} is above the maximum of {self._peer.channel_max}")
        if session is not None and not session.ended:
            raise CommandInvalid(f"begin on channel {channel}, where a session is")
        if begin.remote_channel is not None:
            raise CommandInvalid(f"an answer to a begin that was not sent, on channel {channel}")
        if session is not None:
            self._ending.setdefault(channel, []).append(session)
        session = self._sessions[channel] = Session(channel, self._peer, begin, self._forget)
        session.begin()

    def _forget(self, session: Session) -> None:
        channel = session.channel
        if self._sessions.get(channel) is session:
            del self._sessions[channel]
        elif session in (before := self._ending.get(channel, [])):
            before.remove(session)
            if not before:
                del self._ending[channel]

    def _drop(self) -> None:
        for session in self._sessions.values():
            session.drop()

    def _end(self, error: BrokerError) -> None:
        self._drop()
        self._connection.fail(error)

    # -------------------------------------------------------------- to the peer

    def succeed(self, request: Request, result: Any = None) -> None:  # noqa: ANN401 - as each request says
        """As Engine says."""
        if isinstance(request, Open):
            self._connection.opened()
            self._resume()
        elif isinstance(request, EndSessions):
            if self._connection.state.leaving:
                self._connection.sessions_ended()
        elif isinstance(request, Close):
            self._connection.closed()
        elif (asked := self._peer.answered(request)) and self._connection.speaks:
            asked.done(result)

    def fail(self, request: Request, error: BrokerError) -> None:
        """As Engine says."""
        if self._connection.state.waits_for_broker:
            self._connection.refuse(error)
            self._resume()
        elif asked := self._peer.answered(request):
            if self._connection.speaks:
                asked.failed(error)
        elif isinstance(request, _UNANSWERED) and (session := self._session(request.session)):
            self._fail(session, request, error)

    def _fail(self, session: Session, request: Request, error: BrokerError) -> None:
        """Of a request that nothing waits for. That of a session which is gone is not told of."""
        if error.reach is Reach.CONNECTION:
            self._end(error)
        elif request.link:
            session.fail_link(request.link, error)
        else:
            session.fail(error)

    def _session(self, number: int) -> Session | None:
        """The one that the broker calls so, while its peer hears of it; the next one of a number, once it has begun."""
        if not self._connection.speaks:
            return None
        before = self._ending.get(number - 1)
        found = before[0] if before else self._sessions.get(number - 1)
        return found if found and found.opened else None

    def deliver(self, session: int, deliveries: Deliveries) -> None:
        """As Engine says."""
        its = self._session(session)
        if its and deliveries.bodies:
            its.deliver(deliveries)

    def confirm(self, session: int, dispositions: Sequence[PublishDisposition]) -> None:
        """As Engine says."""
        if its := self._session(session):
            its.confirm(dispositions)

    def returned(self, session: int, returned: Returned) -> None:
        """As Engine says."""
        if its := self._session(session):
            its.publications.returned(returned)

    def cancelled(self, session: int, tag: str, *, stolen: bool = False, fault: BrokerError | None = None) -> None:
        """As Engine says."""
        if its := self._session(session):
            its.cancelled(tag, LinkStolen("the link is attached again, on another connection") if stolen else fault)

    def producing(self, session: int) -> Iterable[Producing]:
        """As Engine says."""
        its = self._session(session)
        return its.producing if its else ()

    def blocked(self, reason: str | None) -> None:
        """As Engine says: by its links' credit (2.6.7), so that a peer that receives as well can settle meanwhile."""
        self._peer.blocked, self._peer.since = reason is not None, 0
        if self._connection.speaks:
            for session in self._sessions.values():
                session.blocked()

    @property
    def holds_back(self) -> bool:
        """As Engine says: what was on its way comes; who sends more than that can be is not read."""
        return self._peer.since <= _ON_ITS_WAY


def _read(body: bytes) -> tuple[Composite, int]:
    """A frame's performative, and where it ends. Raises SyntaxFault."""
    described, end = decode_at(body, 0)
    if not isinstance(described, Described):
        raise SyntaxFault("a frame without a performative")
    performative = composite.of(described)
    if not isinstance(performative, Composite):
        raise NotImplementedHere(f"no performative is {described.descriptor!r}")
    if end < len(body) and not isinstance(performative, Transfer):
        raise SyntaxFault(f"{performative.symbol} with {len(body) - end} bytes behind it")
    return performative, end
