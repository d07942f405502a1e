"""Class connection (section 1.4): which method may come in which state, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from services.common.errors import (
    AccessRefused,
    BrokerError,
    CommandInvalid,
    NotAllowed,
    NotFound,
    NotImplementedHere,
    SyntaxFault,
)
from services.common.release import RELEASE
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_0_9.compression import recoding_for
from services.gateway.protocols.amqp_0_9.frames import MIN_FRAME_MAX
from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.methods import connection
from services.gateway.protocols.amqp_0_9.peer import Peer
from services.gateway.protocols.amqp_0_9.protocol_header import chosen, refusal
from services.gateway.protocols.amqp_0_9.reply_codes import FrameFault, reply_text
from services.gateway.protocols.amqp_0_9.start import start_frame
from services.gateway.protocols.amqp_0_9.versions import VERSIONS
from services.gateway.protocols.idleness import Idleness
from services.gateway.protocols.leaving import Leaving
from services.gateway.protocols.phases import Phase, PhasedState

_Handler = Callable[[Any, Any], None]  # of Connection and a method


class ConnectionState(PhasedState):
    """Of a connection: what it waits for."""

    HEADER = "protocol header"
    START_OK = "start-ok"
    SECURE_OK = "secure-ok"
    AUTHENTICATING = "the broker, after start-ok or secure-ok", Phase.WAITING
    LAST_SECURE_OK = "secure-ok, which has nothing to say: the peer is who it says"
    TUNE_OK = "tune-ok"
    OPEN = "open"
    OPENING = "the broker, after open", Phase.WAITING
    RUNNING = "anything"
    LEAVING = "the broker, before we close it: what was asked for is still being done, and answered", Phase.LEAVING
    BROKEN = "the same, and bytes of the peer's cannot be told apart any more", Phase.SAID_ALL
    CLOSING = "close-ok: we closed it, everything else is ignored", Phase.CLOSING
    ENDING = "the broker, after close: what was asked for before is still being done, and answered", Phase.SAID_ALL
    CLOSED = "nothing", Phase.SAID_ALL


_ANSWERING = frozenset(
    {ConnectionState.RUNNING, ConnectionState.LEAVING, ConnectionState.BROKEN, ConnectionState.ENDING}
)


class AmqpConnection(Leaving):
    """The state of the connection itself. Raises BrokerError for what the peer may not do."""

    STATES = ConnectionState

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self._peer = peer
        self._mechanism = ""
        self._client_properties: Mapping[str, Any] = {}
        self.state = ConnectionState.HEADER

    @property
    def is_opened(self) -> bool:
        """Whether it has been open, or never will be."""
        return self.state is ConnectionState.RUNNING or self.state.is_over

    # -------------------------------------------------------------- from the peer

    def header(self, opening: bytes) -> int:
        """The first bytes (section 4.2.2): how many of them are the protocol header, 0 while it is not complete."""
        if reason := refusal(VERSIONS, opening):
            self._peer.out.append(VERSIONS[0].header)
            self.end(reason)
        elif version := chosen(VERSIONS, opening):
            self._peer.version = version
            self._start()
            return len(version.header)
        return 0

    def _start(self) -> None:
        peer, ours = self._peer, self._peer.limits
        product = ours.product, ours.product_version or RELEASE
        start = start_frame(peer.version.header, tuple(peer.mechanisms), *product, ours.message_compression != "none")
        peer.out.append(start)
        self.state = ConnectionState.START_OK

    def method(self, code: int, payload: bytes) -> None:
        """A method frame on channel 0."""
        kind = self._peer.version.methods.get(code)
        handle = self._TABLE.get((self.state, kind)) or self._ANY_STATE.get(kind)
        if self.state in (ConnectionState.LEAVING, ConnectionState.CLOSING) and handle is None:
            return
        if kind is None:
            raise NotImplementedHere(f"unknown method {code >> 16}.{code & 0xFFFF}")
        if handle is None:
            raise CommandInvalid(f"'{kind.name}' on channel 0 while waiting for {self.state.value}")
        handle(self, self._peer.version.decode(kind, payload))

    def _start_ok(self, method: connection.StartOk) -> None:
        if method.mechanism not in self._peer.mechanisms:
            raise CommandInvalid(f"unknown authentication mechanism '{method.mechanism}'")
        offered = method.client_properties.get("capabilities")
        if isinstance(offered, Mapping):
            self._peer.capabilities = frozenset(name for name, value in offered.items() if value is True)
        self._mechanism, self._client_properties = method.mechanism, method.client_properties
        self._peer.recode = recoding_for(method.client_properties, self._peer.limits)
        self._authenticate(method.response)

    def _secure_ok(self, method: connection.SecureOk) -> None:
        self._authenticate(method.response)

    def _last_secure_ok(self, method: connection.SecureOk) -> None:
        if method.response:
            raise SyntaxFault("a response to a mechanism that has ended")
        self._tune()

    def _authenticate(self, response: bytes) -> None:
        self.state = ConnectionState.AUTHENTICATING
        self._peer.ask(to_broker.Authenticate(0, self._mechanism, response, self._client_properties))

    def _tune_ok(self, method: connection.TuneOk) -> None:
        """As RabbitMQ: 530 for more than was offered (the specification would have the socket closed without a word).

        0 asks for no limit of the client's own, so ours stands.
        """
        peer, ours = self._peer, self._peer.limits
        if method.frame_max and method.frame_max < MIN_FRAME_MAX:
            raise NotAllowed(f"frame_max={method.frame_max} is below the minimum of {MIN_FRAME_MAX}")
        if method.frame_max > ours.frame_max:
            raise NotAllowed(f"frame_max={method.frame_max} is above the maximum of {ours.frame_max}")
        if method.channel_max > ours.channel_max:
            raise NotAllowed(f"channel_max={method.channel_max} is above the maximum of {ours.channel_max}")
        peer.frame_max = method.frame_max or ours.frame_max
        peer.channel_max = method.channel_max or ours.channel_max
        # Section 4.2.7: a peer is gone after two intervals of silence; ours is never more than half of one.
        peer.idleness = Idleness(method.heartbeat / 2, method.heartbeat * 2)
        self.state = ConnectionState.OPEN

    def _open(self, method: connection.Open) -> None:
        self.state, self._peer.virtual_host = ConnectionState.OPENING, method.virtual_host
        self._peer.ask(to_broker.Open(0, method.virtual_host))

    def _update_secret(self, method: connection.UpdateSecret) -> None:
        self._peer.ask(to_broker.UpdateSecret(0, method.new_secret, method.reason))

    def _close(self, _method: connection.Close) -> None:
        self.state = ConnectionState.ENDING
        self._peer.ask(to_broker.Close(0, self.reason))

    def _close_ok(self, _method: connection.CloseOk) -> None:
        self.end(self.reason)

    # (state, method) → what to do; anything that is in neither table is 503 (or ignored after our close).
    _TABLE: ClassVar[Mapping[tuple[ConnectionState, type[Method] | None], _Handler]] = {
        (ConnectionState.START_OK, connection.StartOk): _start_ok,
        (ConnectionState.SECURE_OK, connection.SecureOk): _secure_ok,
        (ConnectionState.LAST_SECURE_OK, connection.SecureOk): _last_secure_ok,
        (ConnectionState.TUNE_OK, connection.TuneOk): _tune_ok,
        (ConnectionState.OPEN, connection.Open): _open,
        (ConnectionState.RUNNING, connection.UpdateSecret): _update_secret,
        (ConnectionState.CLOSING, connection.CloseOk): _close_ok,
    }
    _ANY_STATE: ClassVar[Mapping[type[Method] | None, _Handler]] = {connection.Close: _close}

    # -------------------------------------------------------------- from the broker

    def challenge(self, data: bytes) -> None:
        """The mechanism asks for more."""
        if self.state is ConnectionState.AUTHENTICATING:
            self._peer.send(0, connection.Secure(data))
            self.state = ConnectionState.SECURE_OK

    def authenticated(self, final: bytes) -> None:
        """The peer is who it says. Tune has no place for the mechanism's last word: that is a challenge of its own."""
        if self.state is ConnectionState.AUTHENTICATING and final:
            self._peer.send(0, connection.Secure(final))
            self.state = ConnectionState.LAST_SECURE_OK
        elif self.state is ConnectionState.AUTHENTICATING:
            self._tune()

    def _tune(self) -> None:
        ours = self._peer.limits
        self._peer.send(0, connection.Tune(ours.channel_max, ours.frame_max, ours.heartbeat))
        self.state = ConnectionState.TUNE_OK

    def opened(self) -> None:
        """The virtual host is there, and the peer may use it."""
        if self.state is ConnectionState.OPENING:
            self._peer.send(0, connection.OpenOk())
            self.state = ConnectionState.RUNNING

    def secret_updated(self) -> None:
        """The broker knows the new secret."""
        if self.state in _ANSWERING:
            self._peer.send(0, connection.UpdateSecretOk())

    def refuse(self, request: to_broker.Request, error: BrokerError) -> None:
        """The broker's no to Authenticate or Open."""
        if isinstance(request, to_broker.Open):
            # RabbitMQ's words: whether the host is unknown or forbidden, 530.
            known = NotAllowed(error.text) if isinstance(error, NotFound | AccessRefused) else error
            self.fail(known, connection.Open.code)
        elif isinstance(error, AccessRefused) and "authentication_failure_close" not in self._peer.capabilities:
            self.end(reply_text(error))
        else:
            self.fail(error, 0 if isinstance(error, AccessRefused) else connection.StartOk.code)

    def blocked(self, reason: str | None) -> None:
        """Tells peers that understand it why nothing is read from them (None: no longer)."""
        if self.state is ConnectionState.RUNNING and "connection.blocked" in self._peer.capabilities:
            self._peer.send(0, connection.Unblocked() if reason is None else connection.Blocked(_short(reason)))

    # -------------------------------------------------------------- the end

    def fail(self, error: BrokerError, code: int) -> None:
        """Closes the connection with the error's reply code, when what was asked before is answered. When its bytes
        cannot be told apart any more it ends with that.
        """
        told, self.reason = bool(self.reason), self.reason or reply_text(error)
        if self.state is ConnectionState.HEADER:
            self.end(self.reason)
        elif not told and self.state is not ConnectionState.CLOSED:
            its = self._peer.version.reply_code(error), reply_text(error), code >> 16, code & 0xFFFF
            self._due = connection.Close(*its)
            self._leave()
        self._go_on(told=told, broken=isinstance(error, FrameFault))

    def _leave(self) -> None:
        """Before it is open nothing can have been asked; the peer's own close is still answered, behind ours."""
        if self.state is ConnectionState.RUNNING:
            self.state = ConnectionState.LEAVING
        elif self.state is not ConnectionState.ENDING:
            self._say_close()
            self.state = ConnectionState.CLOSING

    def _send_close(self, close: Method) -> None:
        self._peer.send(0, close)

    def closed(self) -> None:
        """All is done that the peer asked for before its close, or before its bytes could not be told apart."""
        self._say_close()
        if self.state is ConnectionState.ENDING:
            self._peer.send(0, connection.CloseOk())
        if self.state in (ConnectionState.BROKEN, ConnectionState.ENDING):
            self.state = ConnectionState.CLOSED


def _short(text: str) -> str:
    return text.encode()[:255].decode(errors="ignore")
