"""The gateway: sockets on one side, routes and queue owners on the other."""

from __future__ import annotations

import asyncio

from services.common.audit.audit import Audit
from services.common.authentication.authenticator import Authenticator
from services.common.authentication.known_users import KINDS
from services.common.bus.address import bus_address
from services.common.bus.event_bus import EventBus
from services.common.capture.rules import RECORD_KIND as CAPTURE_KIND
from services.common.clients.access import KINDS as ACCESS_KINDS
from services.common.clients.access import Access
from services.common.clients.mgmt import MgmtClient
from services.common.clients.partition_table import ROLE, PartitionTable
from services.common.clients.store import StoreClient
from services.common.clients.topology import TopologyClient
from services.common.config import Settings
from services.common.grpc_server import Server
from services.common.ledger.ledger import Ledger
from services.common.ports.port import RECORD_KIND as PORT_KIND
from services.common.runtime import Tasks
from services.common.telemetry.rules import RECORD_KIND as RULE_KIND
from services.common.telemetry.status import report
from services.common.telemetry.tracer import Tracer
from services.common.uid import UidSource
from services.gateway.connections.engines import Engines
from services.gateway.connections.listener import Listener
from services.gateway.connections.ports import Ports
from services.gateway.observe.observer import Observer
from services.gateway.sessions.broker import Broker
from services.gateway.sessions.permitted import Permits
from services.gateway.sign_in.older_users import OlderUsers

_LAST_WRITES = 2.0  # seconds


class Service:
    """One gateway process; any number of them may run, each with its own origin."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._server = Server(settings.address_of("gateway"), ["hopline.gateway.Gateway"])
        self._tasks = Tasks()

    async def start(self) -> None:
        """Returns when clients can connect and log in; raises OSError when the port is taken."""
        settings = self._settings
        await self._server.listen()
        self._store = StoreClient(settings.address_of("store"))
        origin, _ = await self._store.allocate_origin("gateway")
        prefix = f"{origin}."
        self._bus = EventBus(bus_address(settings), "gateway", f"gateway-{origin}", origin)
        self._bus.start()
        self._audit = Audit(settings, "gateway", f"gateway-{origin}", self._bus.publish)
        self._audit.start()
        self._ledger = Ledger(settings, "gateway", f"gateway-{origin}")
        self._ledger.start()
        self._tracer = Tracer.from_environment(settings, "gateway", f"gateway-{origin}")
        self._topology = TopologyClient(self._store, f"gateway-{origin}", "gateway", prefix)
        table = PartitionTable()
        observer = Observer(
            self._topology.queues,
            table,
            self._bus,
            self._ledger.recorder,
            self._tracer,
            settings.trace_ratio,
            self._ledger.captures,
        )
        self._broker = Broker(
            f"gateway-{origin}",
            UidSource(origin),
            self._store,
            self._topology,
            table,
            observer,
        )
        self._older = OlderUsers(settings.sasl_mechanisms, lambda: MgmtClient(settings.address_of("mgmt")))
        self._authenticator = authenticator = Authenticator(settings, self._older, self._audit)
        self._tasks.start(table.follow(self._store.watch_leases(ROLE)), name="follow leases")
        self._tasks.start(authenticator.follow(self._store.watch_records(KINDS)), name="follow users")
        access = Access(settings.access_control)
        self._tasks.start(access.follow(self._store.watch_records(ACCESS_KINDS)), name="follow access")
        rules = self._store.watch_records([RULE_KIND])
        self._tasks.start(observer.sampler.follow(rules), name="follow tracing rules")
        self._tasks.start(report(self._tracer, "gateway", f"gateway-{origin}", self._store.put_records), "spans status")
        captured = self._store.watch_records([CAPTURE_KIND])
        self._tasks.start(observer.capture.follow(captured), name="follow capture rules")
        self._tasks.start(observer.capture.report(f"gateway-{origin}", self._store), "cost of capture")
        await self._topology.start()
        self._broker.publisher.start()
        self._listener = Listener(settings, self._broker, authenticator, Engines(settings), prefix, Permits(access))
        # Who came before the first user is known would be refused with the right password.
        await authenticator.until_some_user()
        await access.known()
        await self._listener.start()
        self._ports = Ports(self._listener, f"gateway-{origin}", self._store.put_records)
        self._ports.start(self._store.watch_records([PORT_KIND]))
        await self._server.ready()

    async def stop(self) -> None:
        """Says farewell to clients, then leaves the other services."""
        await self._ports.stop()
        await self._listener.stop()
        await self._authenticator.stop()
        await self._older.stop()
        await self._broker.exclusive.stop()
        await self._audit.stop()
        await self._bus.stop()
        # Clients that closed without waiting for confirms have published all the same.
        await self._broker.publisher.drained(_LAST_WRITES)
        await self._ledger.stop()
        await self._broker.publisher.stop()
        await self._topology.stop()
        await self._tasks.stop()
        await asyncio.to_thread(self._tracer.stop)
        await self._store.close()
        await self._server.stop()
        await asyncio.sleep(0)
