"""How a client signs in: SASL, from its first response to the engine's answer, and secrets that it updates later."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import proxy

import structlog

from services.common.authentication.claims import Credentials, Proof
from services.common.authentication.principal import NOBODY, Principal
from services.common.authentication.refusal import TooManyFailures
from services.common.authentication.visit import Visit
from services.common.errors import AccessRefused, BrokerError, NotAllowed, Unavailable
from services.gateway.connections.expiry import Expiry
from services.gateway.observe.record import client_name
from services.gateway.sasl import Challenge, mechanism_named
from services.gateway.sign_in.host_names import host_name

if TYPE_CHECKING:
    from services.common.authentication.authenticator import Authenticator
    from services.common.authentication.claims import Claim
    from services.common.scram import Keys
    from services.gateway import vocabulary as v
    from services.gateway.connections.connection import Connection
    from services.gateway.sasl import Mechanism

log = structlog.get_logger()

_UPDATE = "update-secret"  # in place of a mechanism
_DO = "give the client its user's password, or set it: hopline users add"


class Login:
    """The sign-in of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = proxy(connection)  # weak: the connection refers to this, and a cycle would outlive it
        self.principal: Principal = NOBODY
        self.port = ""  # name of the port by which it came; set by the listener
        self.provider = ""  # authentication provider of the port; set by the listener
        self._expiry = Expiry(connection)
        self._mechanism: Mechanism | None = None
        self._begun = False
        self._update: v.UpdateSecret | None = None  # the last one, not compared yet
        self._comparing = False

    def authenticate(self, request: v.Authenticate) -> None:
        """Answers when the credentials have been checked, or with a challenge; nothing is read until then."""
        self._begun = True
        self._connection.hold(self)
        self._connection.tasks.start(self._answer(request), name="log in")

    def end(self, reason: str) -> None:
        """The connection is gone; the log says why, where it was not known before."""
        self._expiry.cancel()
        if self._connection.closing:
            return
        if why := self._connection.engine.ends_for:  # its peer did not wait for our close, or did not answer it
            self._connection.tell("connection ended", reason=why)
        else:
            self._went_away(reason)

    def _went_away(self, reason: str) -> None:
        """Logs that the client is gone, and why; at debug if it never began to log in: probes come every second."""
        connection, event = self._connection, "client went away"
        if self._begun:
            connection.tell(event, reason=reason)
        else:
            log.debug(event, connection=connection.name, peer=connection.peer, reason=reason)

    def update(self, request: v.UpdateSecret) -> None:
        """Takes a new secret. A password is answered at once, as in RabbitMQ: the connection does not depend on it.

        A wrong password would fail only at the next login, so it is compared now, and a wrong one is logged. With
        credentials that expire, such as tokens, the connection depends on the new one from then on: it has to be valid.
        """
        connection = self._connection
        if self.principal.expires is not None:
            connection.tasks.start(self._renew(request), name="renew what was signed in with")
            return
        connection.engine.succeed(request)
        self._update = request
        if not self._comparing:  # one at a time, and of several the last: passwords are slow to verify
            self._comparing = True
            connection.tasks.start(self._compare(), name="compare a new secret")

    async def _renew(self, request: v.UpdateSecret) -> None:
        connection, said = self._connection, request.secret.decode(errors="replace")
        try:
            renewed = await self._judged(Credentials(connection.user, said), _UPDATE)
            if renewed.name != self.principal.name:
                raise AccessRefused("it is somebody else's")
        except BrokerError as error:
            connection.tell("request refused", request="UpdateSecret", error=error.text)
            connection.engine.close(NotAllowed("the new secret was refused"))
            connection.take_pending()
        else:
            self._signed_in(renewed)
            connection.permitted.renew(renewed)
            connection.engine.succeed(request)
            log.info("client has a new secret", connection=connection.name, user=connection.user, reason=request.reason)
        connection.flush()

    def _signed_in(self, principal: Principal) -> None:
        self.principal = principal
        self._connection.user = principal.name
        if not self._connection.lost:  # nothing would cancel it
            self._expiry.set(principal)

    async def _judged(self, claim: Claim, mechanism: str) -> Principal:
        connection = self._connection
        authenticator: Authenticator = connection.listener.authenticator
        return await authenticator.sign_in(self.provider, claim, connection.peer_host, self._visit(mechanism))

    def _visit(self, mechanism: str) -> Visit:
        connection = self._connection
        return Visit(connection.peer, connection.peer_host, self.port, mechanism, connection.name)

    async def _compare(self) -> None:
        try:
            while update := self._update:
                self._update = None
                await self._is_right(update)
        finally:
            self._comparing = False

    async def _is_right(self, update: v.UpdateSecret) -> None:
        connection = self._connection
        log.info("client has a new secret", connection=connection.name, user=connection.user, reason=update.reason)
        credentials = Credentials(connection.user, update.secret.decode(errors="replace"))
        try:
            await self._judged(credentials, _UPDATE)
        except BrokerError:
            concerns = {"connection": connection.name, "peer": connection.peer, "user": connection.user}
            log.warning("a client's new secret is wrong: its next login will be refused", **concerns, do=_DO)

    async def _answer(self, request: v.Authenticate) -> None:
        connection = self._connection
        try:
            await self._check(request)
        except BrokerError as error:
            connection.fail(request, error, logged=isinstance(error, TooManyFailures | Unavailable))
        except Exception as fault:  # noqa: BLE001 - this client's, whatever it is
            connection.fault("logging a client in", fault)
        connection.release(self)
        connection.flush()

    async def _check(self, request: v.Authenticate) -> None:
        connection, authenticator = self._connection, self._connection.listener.authenticator
        directory = _Directory(authenticator, self.provider, connection.peer_host, connection.certified)
        self._mechanism = self._mechanism or mechanism_named(request.mechanism, directory)
        answer = self._answer_of(self._mechanism, request)
        if isinstance(answer, Challenge):
            connection.engine.challenge(answer.data)
        else:
            self._signed_in(await self._judged(answer, request.mechanism))
            permits, host = connection.listener.permits, connection.peer_host
            name = await host_name(host) if permits.access.rules.wants_names else ""
            connection.permitted = permits.of(connection.user, host, name, self.principal)
            connection.client = client_name(request.client_properties, connection.user)
            connection.engine.authenticated(answer.final if isinstance(answer, Proof) else b"")
            self._mechanism = None
        connection.take_pending()

    def _answer_of(self, mechanism: Mechanism, request: v.Authenticate) -> Claim | Challenge:
        try:
            return mechanism.respond(request.response)
        except BrokerError as error:
            authenticator: Authenticator = self._connection.listener.authenticator
            authenticator.refused(self.provider, "", self._visit(request.mechanism), error)
            raise


class _Directory:
    """As sasl.Directory says; for a client at one address."""

    def __init__(self, authenticator: Authenticator, provider: str, peer: str, certified: str) -> None:
        self.certified = certified
        self._authenticator = authenticator
        self._provider = provider
        self._peer = peer

    def keys_of(self, user: str, mechanism: str) -> Keys:
        return self._authenticator.keys_of(self._provider, user, mechanism, self._peer)
