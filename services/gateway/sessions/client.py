"""What sessions need of the connection that they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from services.common.topology.slots import SlotId
from services.gateway.observe.client import Client as Named

if TYPE_CHECKING:
    from services.common.clients.pressure import Pressure
    from services.common.errors import BrokerError
    from services.common.runtime import Tasks
    from services.gateway.answers import Answers
    from services.gateway.observe.record import ClientRecord
    from services.gateway.sessions.broker import Broker
    from services.gateway.sessions.consumer import Consumer
    from services.gateway.sessions.permitted import Permitted
    from services.gateway.sessions.session import Session
    from services.gateway.vocabulary import CloseSession, Request


class Holds(Protocol):
    """Blocks a client: it is read no further, and is told why."""

    def block(self, by: object, reason: str) -> None: ...
    def unblock(self, by: object) -> None: ...


class Client(Named, Protocol):
    """One connection, as its sessions see it."""

    owns_queues: bool
    """Whether the router may know exclusive queues of it."""
    tells_publisher: bool
    """Whether what it publishes says so: a consumer of its own does not want that."""
    spares: frozenset[SlotId]
    """Queues that get nothing of what it publishes: their only consumer is its own, and does not want that."""
    waiting: int
    """Bytes of requests that wait for others, of all sessions."""

    @property
    def broker(self) -> Broker: ...
    @property
    def engine(self) -> Answers: ...
    @property
    def permitted(self) -> Permitted: ...
    @property
    def record(self) -> ClientRecord: ...
    @property
    def sessions(self) -> dict[int, Session]: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def gets(self) -> asyncio.Semaphore: ...
    @property
    def blocked(self) -> Holds: ...

    @property
    def writable(self) -> bool:
        """Whether the socket takes more."""

    @property
    def parting(self) -> bool:
        """Whether the client has said goodbye: it is sent no deliveries any more."""

    @property
    def lost(self) -> bool:
        """Whether the client is gone."""

    async def drained(self) -> None: ...
    def hold(self, reason: object) -> None: ...
    def release(self, reason: object) -> None: ...
    def congested(self, pressure: Pressure) -> None: ...
    def flush(self) -> None: ...
    def flush_soon(self) -> None: ...
    def wants_to_write(self, session: Session) -> None: ...
    def wants_to_confirm(self, session: Session) -> None: ...
    def wants_to_return(self) -> None: ...
    def wrote(self, consumer: Consumer) -> None: ...
    def cancelled(self, consumer: Consumer, *, stolen: bool = False, fault: BrokerError | None = None) -> None: ...

    def carry_out(self, session: Session, request: Request) -> Coroutine[Any, Any, Any] | None:
        """Begins a request when it is its turn; gives the coroutine to wait for, or None if it is done."""

    def take_pending(self) -> None: ...
    def end_session(self, session: Session, request: CloseSession) -> None: ...
    def fail(self, request: Request, error: BrokerError) -> None: ...
    def fault(self, what: str, fault: Exception) -> None: ...
