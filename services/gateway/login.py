"""Who a client is: SASL, from its first response to the engine's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from services.common.errors import BrokerError
from services.common.login import TooManyFailures
from services.gateway.record import client_name
from services.gateway.sasl import mechanism_named

if TYPE_CHECKING:
    from services.gateway import vocabulary as v
    from services.gateway.connection import Connection
    from services.gateway.sasl import Mechanism


log = structlog.get_logger()


class Login:
    """Of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mechanism: Mechanism | None = None
        self._begun = False

    def authenticate(self, request: v.Authenticate) -> None:
        """Answers when the credentials have been checked, or with a challenge; nothing is read until then."""
        self._begun = True
        self._connection.hold(self)
        self._connection.tasks.start(self._answer(request), name="log in")

    def went_away(self, reason: str) -> None:
        """Logs that the client did, and why. One that never began to log in is a probe: they come every second."""
        say = log.info if self._begun else log.debug
        say("client went away", connection=self._connection.name, peer=self._connection.peer, reason=reason)

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
        connection = self._connection
        self._mechanism = self._mechanism or mechanism_named(request.mechanism)
        answer = self._mechanism.respond(request.response)
        if isinstance(answer, bytes):
            connection.engine.challenge(answer)
        else:
            connection.user = await connection.listener.authenticator.check(answer, connection.peer_host)
            connection.client = client_name(request.client_properties, connection.user)
            connection.engine.authenticated()
        connection.take_pending()
