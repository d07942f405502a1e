"""A session that publishes, and nothing behind it: what queues would get is kept, the router says what a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from services.common.clients.outbound import Messages, Ticket
from services.common.clients.partition_table import PartitionTable
from services.common.clients.pressure import Pressure
from services.common.clients.queue_link import QueueLink
from services.common.errors import BrokerError, SyntaxFault, Unavailable
from services.common.runtime import Tasks
from services.common.uid import UidSource
from services.gateway import answers
from services.gateway import vocabulary as v
from services.gateway.observe.observer import Observer
from services.gateway.observe.record import NO_RECORD
from services.gateway.operations import carry_out
from services.gateway.outcomes import ACCEPTED, PublishDisposition
from services.gateway.routing.routes import RouteCache
from services.gateway.sessions.session import Session
from services.gateway.sessions.transaction import OpenTransactions
from services.rpc import router_pb2
from tests.support.permitted import everything

BAD = b"bad"
"""Properties that no format can read."""


class ScriptedRouter:
    """Keys in `queues` go there, all others to queue 1; a dead one says nothing. Exchanges with h go by headers."""

    version = 1

    def __init__(self, queues: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self.queues = queues or {}
        self.dead = False
        self.asked: list[list[str]] = []  # keys, call by call

    def has_place(self) -> bool:
        """Always."""
        return True

    async def route(self, messages: list[Any], _metadata: object = ()) -> router_pb2.RouteReply:
        """As TopologyClient says."""
        self.asked.append([each.routing_key for each in messages])
        if self.dead:
            raise Unavailable("no router")
        if any(each.properties == BAD for each in messages):
            raise SyntaxFault("no field table")
        return router_pb2.RouteReply(routed=map(self._routed, messages), version=1)

    def _routed(self, message: Any) -> router_pb2.Routed:
        if message.exchange == "none":
            return router_pb2.Routed(unknown_exchange=True)
        ids = self.queues.get(message.routing_key, (1,))
        return router_pb2.Routed(queue_ids=ids, needs_headers=message.exchange.startswith("h"))


class Handed:
    """In place of the publisher: keeps what it is handed, and the tickets that wait for it. It is always a second past
    the beginning of all time.
    """

    def __init__(self) -> None:
        self.uids = UidSource(1)
        self.links: dict[int, QueueLink] = {}  # by queue
        self.link_of = self.links.get
        self.messages: list[Messages] = []
        self.tickets: list[Ticket | None] = []

    @property
    def bodies(self) -> list[bytes]:
        """All of them, in the order in which they came."""
        return [body for each in self.messages for body in each.bodies]

    def now(self) -> int:
        """As Publisher says."""
        return 1000

    def publish(self, messages: Messages, ticket: Ticket | None) -> None:
        """As Publisher says."""
        self.messages.append(messages)
        self.tickets.append(ticket)


class Client:
    """A connection with one session, 1; must be made in a running loop."""

    def __init__(self, router: ScriptedRouter | None = None) -> None:
        self.router = router or ScriptedRouter()
        self.handed = Handed()
        self.broker = SimpleNamespace(
            sessions={},
            routes=RouteCache(cast("Any", self.router)),
            publisher=self.handed,
            observer=Observer({}, PartitionTable()),
            unwritable=SimpleNamespace(now=False),
            management=None,
            transactions=SimpleNamespace(open=OpenTransactions(1 << 30)),
        )
        self.virtual_host, self.user, self.record = "/", "guest", NO_RECORD
        self.name, self.tells_publisher, self.spares = "1.1", False, frozenset[int]()
        self.permitted = everything()
        self.engine = self
        self.tasks = Tasks()
        self.lost = False
        self.waiting = 0
        self.errors: list[BrokerError] = []
        self.back: list[answers.Returned] = []
        self.told: list[PublishDisposition] = []
        self.pressure: list[Pressure] = []
        self.congested = self.pressure.append
        self.session = Session(1, cast("Any", self))
        self.sessions = {1: self.session}

    async def does(self, *requests: v.Request) -> None:
        """Carries them out in the session's order."""
        for each in requests:
            self.session.handle(each)
        await self.session.idle()

    # -------------------------------------------------------------- as the session's connection and engine

    def carry_out(self, session: Session, request: v.Request) -> Any:
        """As Connection says."""
        return carry_out(session, request)

    def fail(self, _request: v.Request, error: BrokerError) -> None:
        """As Connection says."""
        self.errors.append(error)

    def take_pending(self) -> None:
        """Nothing arises from answers."""

    def fault(self, _what: str, fault: Exception) -> None:
        """As Connection says."""
        raise fault

    def wants_to_confirm(self, session: Session) -> None:
        """Confirms at once."""
        session.write_confirms()

    def confirm(self, _session: int, dispositions: Sequence[PublishDisposition]) -> None:
        """As Engine says."""
        self.told += dispositions

    @property
    def confirmed(self) -> list[tuple[int, int]]:
        """Numbers of those that are safe."""
        return [(each.first, each.last) for each in self.told if each.outcome is ACCEPTED]

    def returned(self, _session: int, returned: answers.Returned) -> None:
        """As Engine says."""
        self.back.append(returned)

    def _nothing(self, *_: object) -> None:
        pass

    succeed = release = hold = flush = flush_soon = wants_to_return = _nothing
