"""Who a client is: SASL, from its first response to the engine's answer, and secrets that it changes later."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import proxy

import structlog

from services.common.errors import AccessRefused, BrokerError
from services.common.login import TooManyFailures
from services.gateway.observe.record import client_name
from services.gateway.sasl import Challenge, Credentials, Proof, mechanism_named
from services.gateway.sign_in.host_names import host_name

if TYPE_CHECKING:
    from services.common.scram import Keys
    from services.gateway import vocabulary as v
    from services.gateway.connections.connection import Connection
    from services.gateway.sasl import Mechanism
    from services.gateway.sign_in.authentication import Authenticator

log = structlog.get_logger()

_DO = "give the client its user's password, or set it: hopline users add"


class Login:
    """Of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = proxy(connection)  # which has this one: a circle would stay when it is gone
        self._mechanism: Mechanism | None = None
        self._begun = False
        self._update: v.UpdateSecret | None = None  # the last one, which is not compared yet
        self._comparing = False

    def authenticate(self, request: v.Authenticate) -> None:
        """Answers when the credentials have been checked, or with a challenge; nothing is read until then."""
        self._begun = True
        self._connection.hold(self)
        self._connection.tasks.start(self._answer(request), name="log in")

    def went_away(self, reason: str) -> None:
        """Logs that the client did, and why. One that never began to log in is a probe: they come every second."""
        connection, event = self._connection, "client went away"
        if self._begun:
            connection.tell(event, reason=reason)
        else:
            log.debug(event, connection=connection.name, peer=connection.peer, reason=reason)

    def update(self, request: v.UpdateSecret) -> None:
        """Answers at once, as RabbitMQ does where secrets are passwords: a login does not end when they change.

        One that is wrong would be found at the next login only, so it is compared, and the log says it today.
        """
        connection = self._connection
        connection.engine.succeed(request)
        self._update = request
        if not self._comparing:  # one at a time, and then the last: passwords are slow to verify, and so are lines
            self._comparing = True
            connection.tasks.start(self._compare(), name="compare a new secret")

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
            await connection.listener.authenticator.check(credentials, connection.peer_host)
        except AccessRefused:
            concerns = {"connection": connection.name, "peer": connection.peer, "user": connection.user}
            log.warning("a client's new secret is wrong: its next login will be refused", **concerns, do=_DO)

    async def _answer(self, request: v.Authenticate) -> None:
        connection = self._connection
        try:
            await self._check(request)
        except BrokerError as error:
            connection.fail(request, error, logged=isinstance(error, TooManyFailures))
        except Exception as fault:  # noqa: BLE001 - this client's, whatever it is
            connection.fault("logging a client in", fault)
        connection.release(self)
        connection.flush()

    async def _check(self, request: v.Authenticate) -> None:
        connection, authenticator = self._connection, self._connection.listener.authenticator
        directory = _Directory(authenticator, connection.peer_host, connection.certified)
        self._mechanism = self._mechanism or mechanism_named(request.mechanism, directory)
        answer = self._mechanism.respond(request.response)
        if isinstance(answer, Challenge):
            connection.engine.challenge(answer.data)
        else:
            connection.user = await authenticator.check(answer, connection.peer_host)
            if connection.listener.permits.access.rules.wants_names:
                connection.host_name = await host_name(connection.peer_host)
            connection.client = client_name(request.client_properties, connection.user)
            connection.engine.authenticated(answer.final if isinstance(answer, Proof) else b"")
            self._mechanism = None
        connection.take_pending()


class _Directory:
    """As sasl.Directory says; for who is at one address."""

    def __init__(self, authenticator: Authenticator, peer: str, certified: str) -> None:
        self.certified = certified
        self._authenticator = authenticator
        self._peer = peer

    def keys_of(self, user: str, mechanism: str) -> Keys:
        return self._authenticator.keys_of(user, mechanism, self._peer)
