"""Makes protocol engines for connections, with the limits that they propose and the mechanisms that they offer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog

from services.common import plugins
from services.common.memory import available, largest_message
from services.gateway.protocols.limits import Limits, limits_of
from services.gateway.protocols.undecided import Undecided
from services.gateway.sasl import offered

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.gateway.connections.connection import Connection
    from services.gateway.protocols.engine import Engine

log = structlog.get_logger()

_DO = "see that it has more memory (HOPLINE_MEMORY), or set HOPLINE_MAX_MESSAGE_SIZE lower"


class Engines:
    """The engine factory of one gateway."""

    def __init__(self, settings: Settings) -> None:
        """Raises CannotStart as `offered`."""
        self._settings = settings
        self._largest = _largest_message(settings)
        self._limits: dict[type[Engine], Limits] = {}
        self.mechanisms = tuple(
            offered(settings.sasl_mechanisms, settings.anonymous_user, certificates=settings.tls_clients != "none")
        )

    def create(self, protocols: Sequence[str], mechanisms: Sequence[str]) -> Engine:
        """An engine for a new connection, which may speak these protocols, and is offered these mechanisms."""
        kinds = [plugins.load("protocols", name) for name in protocols]
        if len(kinds) > 1:
            return Undecided(kinds, partial(self._create, mechanisms))
        return self._create(mechanisms, kinds[0])

    def _create(self, mechanisms: Sequence[str], kind: type[Engine]) -> Engine:
        limits = self._limits.get(kind)
        if limits is None:
            limits = self._limits[kind] = limits_of(kind.LIMITS, self._settings, self._largest)
        return kind(limits, mechanisms)  # type: ignore[call-arg]  # a protocol does not say how it is made


def speak(connection: Connection, engine: Engine) -> None:
    """Sets a connection's engine; an undecided one is replaced by the engine that it becomes."""
    connection.engine = engine
    if isinstance(engine, Undecided):
        engine.become = partial(speak, connection)


def _largest_message(settings: Settings) -> int:
    largest = min(settings.max_message_size, largest_message(available()))
    if largest < settings.max_message_size:
        what, wanted = "messages are limited to what memory bears", settings.max_message_size
        log.warning(what, wanted=wanted, largest=largest, do=_DO)
    return largest
