"""Makes protocol engines for connections, with the limits that they propose and the mechanisms that they offer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog

from services.common import plugins
from services.common.memory import available, largest_message
from services.gateway.protocols.limits import Limits
from services.gateway.protocols.undecided import Undecided
from services.gateway.sasl import offered

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.gateway.connections.connection import Connection
    from services.gateway.protocols.engine import Engine

log = structlog.get_logger()


class Engines:
    """The engine factory of one gateway."""

    def __init__(self, settings: Settings) -> None:
        """Raises CannotStart as `offered`."""
        self._limits = _limits(settings)
        self.mechanisms = tuple(
            offered(settings.sasl_mechanisms, settings.anonymous_user, certificates=settings.tls_clients != "none")
        )

    def create(self, protocols: Sequence[str], mechanisms: Sequence[str]) -> Engine:
        """An engine for a new connection, which may speak these protocols, and is offered these mechanisms."""
        kinds = [plugins.load("protocols", name) for name in protocols]
        if len(kinds) > 1:
            return Undecided(kinds, self._limits, mechanisms)
        engine: Engine = kinds[0](self._limits, mechanisms)
        return engine


def speak(connection: Connection, engine: Engine) -> None:
    """Sets a connection's engine; an undecided one is replaced by the engine that it becomes."""
    connection.engine = engine
    if isinstance(engine, Undecided):
        engine.become = partial(speak, connection)


def _limits(settings: Settings) -> Limits:
    largest = min(settings.max_message_size, largest_message(available()))
    if largest < settings.max_message_size:
        log.warning("messages are limited to what memory bears", wanted=settings.max_message_size, largest=largest)
    return Limits(
        frame_max=settings.frame_max,
        channel_max=settings.channel_max,
        heartbeat=settings.heartbeat,
        max_message_size=largest,
        compression=settings.message_compression,
        compression_threshold=settings.message_compression_threshold,
        product=settings.product,
        version=settings.product_version,
    )
