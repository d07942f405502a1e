"""The engine of AMQP 0-9-1, 0-9 and 0-8: frames in, requests out; answers and deliveries in, frames out.

See protocols.engine. It takes the stream apart and gives each frame to what it belongs to: class connection to
`Connection`, all else to `Channels`; publishes and settlements first to their hot ways. Errors come back here and
become a close.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar

from services.common.errors import BrokerError, CommandInvalid, SyntaxFault
from services.gateway.answers import Deliveries, Returned
from services.gateway.outcomes import PublishDisposition
from services.gateway.protocols.amqp_0_9 import frames, outgoing
from services.gateway.protocols.amqp_0_9.channels import Channels
from services.gateway.protocols.amqp_0_9.connection import AmqpConnection, ConnectionState
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.protocols.amqp_0_9.methods import basic
from services.gateway.protocols.amqp_0_9.peer import PORTION, Peer
from services.gateway.protocols.amqp_0_9.reply_codes import (
    NAMES,
    NO_CONSUMERS,
    NO_ROUTE,
    ChannelFault,
    FrameFault,
    ends_connection,
)
from services.gateway.protocols.amqp_0_9.settlements import CODES as SETTLING
from services.gateway.protocols.amqp_0_9.versions import VERSIONS
from services.gateway.protocols.dealings import LARGE, Received
from services.gateway.protocols.limits import Limits
from services.gateway.protocols.openings import begins
from services.gateway.protocols.stream_engine import MOST_EFFORT, StreamEngine
from services.gateway.vocabulary import Close, EndSessions, Open, Request, UpdateSecret

_CODE = struct.Struct(">I")
_BYTES_PER_MICROSECOND = {frames.METHOD: 4, frames.HEADER: 8, frames.BODY: 8192, frames.HEARTBEAT: 1}
_HEADERS = tuple(version.header for version in VERSIONS)


class AmqpEngine(StreamEngine):
    """One connection's AMQP. See services.gateway.protocols.engine."""

    LIMITS: ClassVar[type[Limits]] = Amqp09Limits

    def __init__(self, limits: Amqp09Limits, mechanisms: Sequence[str]) -> None:
        """`mechanisms` are the SASL mechanisms that are offered, best first."""
        self._peer = Peer(VERSIONS[0], limits, mechanisms)
        self._connection = AmqpConnection(self._peer)
        self._channels = Channels(self._peer)
        self._code = 0  # of the method that is to blame when the frame at hand fails
        super().__init__(self._peer, self._connection, frames.BEAT)

    @staticmethod
    def begins(opening: bytes) -> bool | None:
        """As Engine says."""
        return begins(_HEADERS, opening)

    @property
    def name(self) -> str:
        """As Engine says."""
        return self._peer.version.name

    # -------------------------------------------------------------- from the peer

    def _parse(self, data: Received) -> None:
        position, needed = 0, frames.HEAD.size
        if self._connection.state is ConnectionState.HEADER:
            position = self._connection.header(bytes(data))
        if position or self._connection.state is not ConnectionState.HEADER:
            position, needed = self._parse_frames(data, position)
        self._keep(data[position:], needed)

    def _take_back(self) -> None:
        self._channels.take_back()

    def _parse_frames(self, data: Received, position: int) -> tuple[int, int]:
        """Handles whole frames; gives where it stopped and how many bytes are needed from there to go on."""
        end, connection, requests = len(data), self._connection, self._peer.requests
        while end - position >= frames.HEAD.size:
            if connection.state.waits_for_broker or not connection.state.reads:
                break
            kind, number, size = frames.HEAD.unpack_from(data, position)
            if kind not in frames.KINDS or size > self._peer.frame_max - frames.OVERHEAD:
                self._fail_connection(FrameFault(f"no frame: type {kind}, {size} bytes of payload"), 0)
                break
            after = position + size + frames.OVERHEAD
            if after > end:
                return position, size + frames.OVERHEAD
            if len(requests) >= PORTION or self._peer.effort >= MOST_EFFORT:
                self.unread = True
                return position, 0
            hot = self._hot(kind, size, data, position)
            if hot > position:
                position = hot
                continue
            self._peer.effort += 1 + size // _BYTES_PER_MICROSECOND[kind]
            self._frame(kind, number, _payload(kind, data, position + frames.HEAD.size, after - 1), data[after - 1])
            position = after
        return position, frames.HEAD.size

    def _hot(self, kind: int, size: int, data: Received, position: int) -> int:
        """Where the hot ways of publishes and settlements stopped; `position` when they took nothing."""
        if kind != frames.METHOD or size < _CODE.size or self._connection.state is not ConnectionState.RUNNING:
            return position
        (code,) = _CODE.unpack_from(data, position + frames.HEAD.size)
        if code == basic.Publish.code:
            return self._channels.publications.read(data, position)
        return self._channels.settlements.read(data, position) if code in SETTLING else position

    def _frame(self, kind: int, number: int, payload: Received, end_octet: int) -> None:
        self._code = 0
        try:
            if end_octet != frames.END:
                raise FrameFault(f"a frame ends with {end_octet:#04x} instead of 0xce")
            if kind == frames.METHOD:
                self._method(number, bytes(payload))
            elif kind == frames.HEARTBEAT:
                self._heartbeat(number, payload)
            elif not self._connection.state.is_over:
                self._content(kind, number, payload)
        except BrokerError as error:
            self._fault(error, number)

    def _heartbeat(self, number: int, payload: Received) -> None:
        """Section 4.2.7."""
        if number or payload:
            raise FrameFault(f"a heartbeat on channel {number} with {len(payload)} bytes of payload")
        if self._beats_too_early():
            raise FrameFault("too many heartbeats before the connection is open")

    def _method(self, number: int, payload: bytes) -> None:
        if len(payload) < _CODE.size:
            raise SyntaxFault("a method frame without a method")
        (self._code,) = _CODE.unpack_from(payload)
        if number == 0:
            self._connection.method(self._code, payload)
            if not self._connection.state.reads:
                self._channels.drop_contents()
        elif self._connection.state is ConnectionState.RUNNING:
            self._channels.method(number, self._code, payload)
        elif not self._connection.state.is_over:
            raise CommandInvalid(f"a method on channel {number} before the connection is open")

    def _content(self, kind: int, number: int, payload: Received) -> None:
        self._code = basic.Publish.code
        if number == 0 or self._connection.state is not ConnectionState.RUNNING:
            raise ChannelFault(f"content on channel {number}, which is not open")
        if kind == frames.HEADER:
            self._channels.header(number, bytes(payload))
        else:
            self._channels.body(number, payload)

    def _fault(self, error: BrokerError, number: int) -> None:
        if number == 0 or ends_connection(error):
            self._fail_connection(error, self._code)
        else:
            self._channels.refuse(number, error, self._code)

    def _end(self, error: BrokerError) -> None:
        self._fail_connection(error, 0)

    def _fail_connection(self, error: BrokerError, code: int) -> None:
        self._channels.drop_contents()
        self._connection.fail(error, code)

    # -------------------------------------------------------------- to the peer

    def succeed(self, request: Request, result: Any = None) -> None:  # noqa: ANN401 - as each request says
        """As Engine says."""
        if isinstance(request, Open):
            self._connection.opened()
            self._resume()
        elif isinstance(request, UpdateSecret):
            self._connection.secret_updated()
        elif isinstance(request, EndSessions):
            if self._connection.state.leaving:
                self._channels.forget()
                self._connection.sessions_ended()
        elif isinstance(request, Close):
            self._channels.forget()
            self._connection.closed()
        else:
            self._channels.answer(request, result)

    def fail(self, request: Request, error: BrokerError) -> None:
        """As Engine says."""
        if self._connection.state.waits_for_broker:
            self._connection.refuse(request, error)
            self._resume()
            return
        code = self._channels.code_of(request)
        if code is None:
            return
        if ends_connection(error):
            self._fail_connection(error, code)
        else:
            self._channels.fail(request.session, error, code)

    def deliver(self, session: int, deliveries: Deliveries) -> None:
        """As Engine says."""
        if deliveries.bodies and self._channels.is_open(session):
            self._peer.out += outgoing.deliveries(session, deliveries, self._peer.frame_max, self._peer.recode)

    def confirm(self, session: int, dispositions: Sequence[PublishDisposition]) -> None:
        """As Engine says."""
        self._channels.tell_outcomes(session, dispositions)

    def returned(self, session: int, returned: Returned) -> None:
        """As Engine says."""
        if not self._channels.is_heard(session):
            return
        code = NO_CONSUMERS if returned.no_consumers else NO_ROUTE
        publish = returned.publish
        for index in returned.indexes:
            facts, properties, body = publish.kinds[index].facts, publish.properties[index], publish.bodies[index]
            method = basic.Return(code, NAMES[code], facts.exchange, facts.routing_key)
            self._peer.send_content(session, method, properties, body)

    def cancelled(
        self,
        session: int,
        tag: str,
        *,
        stolen: bool = False,  # noqa: ARG002 - basic.cancel has no word for why
        fault: BrokerError | None = None,  # noqa: ARG002 - the same
    ) -> None:
        """As Engine says."""
        self._channels.cancelled(session, tag)

    def blocked(self, reason: str | None) -> None:
        """As Engine says."""
        self._connection.blocked(reason)


def _payload(kind: int, data: Received, begin: int, end: int) -> Received:
    """Of a frame; that of a large body is lent where the read is, and copied where it belongs."""
    payload = data[begin:end]
    return payload if kind == frames.BODY and end - begin >= LARGE else bytes(payload)
