"""The connection itself: headers, SASL, open and close (part 2, section 2.4; part 5, section 5.3)."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from services.common.errors import AccessRefused, BrokerError, CommandInvalid, NotAllowed
from services.common.message.amqp_1_0.composite import Composite, write
from services.common.release import RELEASE
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0 import frames, security
from services.gateway.protocols.amqp_1_0.conditions import FramingError, told
from services.gateway.protocols.amqp_1_0.peer import Peer
from services.gateway.protocols.amqp_1_0.performatives import Close, Open
from services.gateway.protocols.idleness import Idleness
from services.gateway.protocols.leaving import Leaving
from services.gateway.protocols.openings import refused
from services.gateway.protocols.phases import Phase, PhasedState

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"

_WITHOUT_SASL: Final = ("EXTERNAL", "ANONYMOUS")
"""Mechanisms by which a client is let in that uses no SASL, best first."""

_VIRTUAL_HOST: Final = "vhost:"  # how a hostname begins that names one, as with RabbitMQ
_USUAL_VIRTUAL_HOST: Final = "/"

_Handler = Callable[[Any, Any], None]  # of Connection and a performative


class ConnectionState(PhasedState):
    """Of a connection: what it waits for."""

    HEADER = "protocol header"
    INIT = "sasl-init"
    RESPONSE = "sasl-response"
    AUTHENTICATING = "the broker, after sasl-init or sasl-response", Phase.WAITING
    AMQP_HEADER = "the header of AMQP, after SASL"
    ADMITTING = "the broker, of a client that came without SASL", Phase.WAITING
    OPEN = "open"
    OPENING = "the broker, after open", Phase.WAITING
    RUNNING = "anything"
    LEAVING = (
        "the broker, before we close it: what was asked for before is still being done, and answered",
        Phase.LEAVING,
    )
    BROKEN = "the same, and bytes of the peer's cannot be told apart any more", Phase.SAID_ALL
    CLOSING = "close: we have closed it, everything else is ignored", Phase.CLOSING
    ENDING = "the broker, after close: what was asked for before is still being done", Phase.SAID_ALL
    CLOSED = "nothing", Phase.SAID_ALL


_HEADERS = frozenset({ConnectionState.HEADER, ConnectionState.AMQP_HEADER})
_SASL = frozenset({ConnectionState.INIT, ConnectionState.RESPONSE})
_ANSWERING = frozenset(
    {ConnectionState.RUNNING, ConnectionState.LEAVING, ConnectionState.BROKEN, ConnectionState.ENDING}
)


class Amqp10Connection(Leaving):
    """The state of the connection itself. Raises BrokerError for what the peer may not do."""

    STATES = ConnectionState

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self._peer = peer
        self._mechanism = ""
        self._opened = False  # we have said so
        self.state = ConnectionState.HEADER

    @property
    def wants_header(self) -> bool:
        """What comes next is a protocol header, and no frame."""
        return self.state in _HEADERS

    @property
    def frame_type(self) -> int:
        """Of the frames that come now."""
        return frames.SASL if self.state in _SASL else frames.AMQP

    @property
    def is_opened(self) -> bool:
        """Whether the peer knows how large frames may be, also while it has not heard that we have closed."""
        return self._opened

    @property
    def speaks(self) -> bool:
        """Whether the peer may be told of its sessions."""
        return self.state in _ANSWERING

    # -------------------------------------------------------------- headers (2.2, 5.3.2)

    def header(self, opening: bytes) -> int:
        """How many of the bytes are the protocol header: 0 while it is not complete."""
        expected = (AMQP_HEADER,) if self.state is ConnectionState.AMQP_HEADER else (SASL_HEADER, AMQP_HEADER)
        given = opening[: len(AMQP_HEADER)]
        if not any(each.startswith(given) for each in expected):
            self._peer.out.append(expected[0])
            self.end(refused("AMQP 1.0", given))
        elif len(given) == len(AMQP_HEADER):
            self._begin(given)
            return len(given)
        return 0

    def _begin(self, header: bytes) -> None:
        if header == SASL_HEADER:
            self._peer.out.append(SASL_HEADER)
            self._say(security.Mechanisms(tuple(self._peer.mechanisms)))
            self.state = ConnectionState.INIT
        elif self.state is ConnectionState.AMQP_HEADER:
            self._peer.out.append(AMQP_HEADER)
            self.state = ConnectionState.OPEN
        else:
            self._admit()

    def _admit(self) -> None:
        """Without SASL a client is the user of its certificate, or the anonymous one; else it has to use SASL."""
        name = next((name for name in _WITHOUT_SASL if name in self._peer.mechanisms), None)
        if name is None:
            self._peer.out.append(SASL_HEADER)
            self.end("a client that does not sign in")
        else:
            self.state = ConnectionState.ADMITTING
            self._peer.ask(to_broker.Authenticate(0, name, b""))

    def _say(self, what: Composite) -> None:
        self._peer.out.append(frames.frame(frames.SASL, 0, write(what)))

    # -------------------------------------------------------------- from the peer

    def performative(self, what: Composite) -> None:
        """One of the connection's own, in whatever state; what comes on a session when there is none is a fault."""
        handle = self._TABLE.get((self.state, type(what)))
        if self.state in (ConnectionState.LEAVING, ConnectionState.CLOSING) and handle is None:
            return
        if handle is None:
            raise CommandInvalid(f"{what.symbol} while waiting for {self.state.value}")
        handle(self, what)

    def _init(self, init: security.Init) -> None:
        if init.mechanism not in self._peer.mechanisms:
            raise AccessRefused(f"unknown authentication mechanism '{init.mechanism}'")
        self._mechanism = init.mechanism
        self._authenticate(init.initial_response or b"")

    def _response(self, response: security.Response) -> None:
        self._authenticate(response.response)

    def _authenticate(self, response: bytes) -> None:
        self.state = ConnectionState.AUTHENTICATING
        self._peer.ask(to_broker.Authenticate(0, self._mechanism, response))

    def _open(self, its: Open) -> None:
        peer = self._peer
        if its.max_frame_size < frames.MIN_MAX_FRAME_SIZE:
            raise FramingError(f"max-frame-size {its.max_frame_size} is below {frames.MIN_MAX_FRAME_SIZE}")
        if its.idle_time_out and its.idle_time_out < 1000:
            raise NotAllowed(f"an idle-time-out of {its.idle_time_out} ms: the shortest that is kept is a second")
        peer.max_frame_size = min(its.max_frame_size, peer.limits.frame_max)
        peer.channel_max = min(its.channel_max, peer.limits.channel_max)
        # Section 2.4.5: each end says what it bears, and says the half, since frames may be late.
        peer.idleness = Idleness((its.idle_time_out or 0) / 2000, peer.limits.heartbeat * 2)
        peer.virtual_host, peer.container = _virtual_host(its.hostname), its.container_id
        self.state = ConnectionState.OPENING
        peer.ask(to_broker.Open(0, peer.virtual_host, its.container_id))

    def _close(self, _close: Close) -> None:
        self.state = ConnectionState.ENDING
        self._peer.ask(to_broker.Close(0, self.reason))

    def _closed(self, _close: Close) -> None:
        self.end(self.reason)

    # (state, performative) → what to do; anything else is an illegal state (or ignored after ours).
    _TABLE: ClassVar[Mapping[tuple[ConnectionState, type[Composite]], _Handler]] = {
        (ConnectionState.INIT, security.Init): _init,
        (ConnectionState.RESPONSE, security.Response): _response,
        (ConnectionState.OPEN, Open): _open,
        (ConnectionState.RUNNING, Close): _close,
        (ConnectionState.LEAVING, Close): _close,
        (ConnectionState.CLOSING, Close): _closed,
    }

    # -------------------------------------------------------------- from the broker

    def challenge(self, data: bytes) -> None:
        """The mechanism asks for more."""
        if self.state is ConnectionState.AUTHENTICATING:
            self._say(security.Challenge(data))
            self.state = ConnectionState.RESPONSE

    def authenticated(self, final: bytes) -> None:
        """The peer is who it says, or is let in as the anonymous user."""
        if self.state is ConnectionState.AUTHENTICATING:
            self._say(security.Outcome(security.OK, final or None))
            self.state = ConnectionState.AMQP_HEADER
        elif self.state is ConnectionState.ADMITTING:
            self._peer.out.append(AMQP_HEADER)
            self.state = ConnectionState.OPEN

    def opened(self) -> None:
        """The virtual host is there, and the peer may use it."""
        if self.state is ConnectionState.OPENING:
            self._say_open()
            self.state = ConnectionState.RUNNING

    def _say_open(self) -> None:
        peer, ours = self._peer, self._peer.limits
        if self._opened:
            return
        self._opened = True
        peer.send(
            0,
            Open(
                ours.product,
                max_frame_size=ours.frame_max,
                channel_max=ours.channel_max,
                idle_time_out=ours.heartbeat * 1000 or None,
                properties={
                    "product": ours.product,
                    "version": ours.product_version or RELEASE,
                    "platform": f"Python {platform.python_version()}",
                },
            ),
        )

    def refuse(self, error: BrokerError) -> None:
        """The broker's no to Authenticate or Open."""
        if self.state is ConnectionState.OPENING:
            self.fail(error)
        elif self.state is ConnectionState.ADMITTING:
            self._peer.out.append(SASL_HEADER)
            self.end(error.text)
        else:
            self._say(security.Outcome(security.AUTH if isinstance(error, AccessRefused) else security.SYS))
            self.end(error.text)

    # -------------------------------------------------------------- the end

    def fail(self, error: BrokerError) -> None:
        """Closes the connection with the error's condition, when what was asked before is answered. It ends with that
        where its bytes cannot be told apart any more.

        An open goes before the close, whatever was wrong with the peer's (section 2.4.1).
        """
        told_before, self.reason = bool(self.reason), self.reason or error.text
        if self.state in _HEADERS:
            self.end(self.reason)
        elif self.state in _SASL or self.state is ConnectionState.AUTHENTICATING:
            self._say(security.Outcome(security.AUTH if isinstance(error, AccessRefused) else security.SYS))
            self.end(self.reason)
        elif not told_before and self.state is not ConnectionState.CLOSED:
            self._due = Close(told(error))
            self._leave()
        self._go_on(told=told_before, broken=isinstance(error, FramingError))

    def _leave(self) -> None:
        """Before it is open nothing can have been asked; the peer's own close is answered with ours."""
        if self.state is ConnectionState.RUNNING:
            self.state = ConnectionState.LEAVING
        elif self.state is not ConnectionState.ENDING:
            self._say_open()
            self._say_close()
            self.state = ConnectionState.CLOSING

    def _send_close(self, close: Close) -> None:
        self._peer.send(0, close)

    def closed(self) -> None:
        """All is done that the peer asked for before its close, or before its bytes could not be told apart."""
        if self.state in (ConnectionState.BROKEN, ConnectionState.ENDING):
            self._due = self._due or Close()
            self._say_close()
            self.state = ConnectionState.CLOSED


def _virtual_host(hostname: str | None) -> str:
    """Clients put the name of the machine there; who means a virtual host says so."""
    if hostname and hostname.startswith(_VIRTUAL_HOST):
        return hostname.removeprefix(_VIRTUAL_HOST)
    return _USUAL_VIRTUAL_HOST
