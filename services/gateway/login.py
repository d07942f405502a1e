"""Who a client is: SASL, from its first response to the engine's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.errors import BrokerError
from services.gateway.record import client_name
from services.gateway.sasl import mechanism_named

if TYPE_CHECKING:
    from services.gateway import vocabulary as v
    from services.gateway.connection import Connection
    from services.gateway.sasl import Mechanism


class Login:
    """Of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mechanism: Mechanism | None = None

    def authenticate(self, request: v.Authenticate) -> None:
        """Answers when the credentials have been checked, or with a challenge."""
        self._connection.tasks.start(self._answer(request), name="log in")

    async def _answer(self, request: v.Authenticate) -> None:
        connection = self._connection
        try:
            await self._check(request)
        except BrokerError as error:
            connection.fail(request, error)
        except Exception as fault:  # noqa: BLE001 - this client's, whatever it is
            connection.fault("logging a client in", fault)
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
