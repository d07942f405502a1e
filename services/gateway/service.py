"""The gateway: sockets on one side, routes and queue owners on the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from services.common.advertise import reachable_address
from services.common.arguments.costly import selectors_of
from services.common.audit.audit import Audit
from services.common.authentication.authenticator import Authenticator
from services.common.authentication.known_users import KINDS
from services.common.bus.address import bus_address
from services.common.bus.event_bus import EventBus
from services.common.capture.rules import RECORD_KIND as CAPTURE_KIND
from services.common.clients.access import KINDS as ACCESS_KINDS
from services.common.clients.access import Access
from services.common.clients.first_snapshot import FirstSnapshots
from services.common.clients.mgmt import MgmtClient
from services.common.clients.partition_table import ROLE, PartitionTable
from services.common.clients.store import StoreClient
from services.common.clients.topology import TopologyClient
from services.common.compiling import Compiling
from services.common.config import Settings
from services.common.grpc_server import Server
from services.common.ledger.ledger import Ledger
from services.common.ledger.recorder import Recorder
from services.common.limit_rules import RECORD_KIND as LIMIT_RULES
from services.common.limits import KNOWN as LIMITS
from services.common.limits import Limits
from services.common.log_serving import LogServing
from services.common.memory import share
from services.common.metrics.exporting import Exporting
from services.common.metrics.meters import Meters
from services.common.metrics.process import measure_ledger, measure_process, measure_sign_ins, measure_told
from services.common.metrics.serving import Serving
from services.common.metrics.stages import CountedStages
from services.common.ports.port import RECORD_KIND as PORT_KIND
from services.common.runtime import Tasks
from services.common.telemetry.rules import RECORD_KIND as RULE_KIND
from services.common.telemetry.status import report
from services.common.telemetry.tracer import Tracer
from services.common.uid import UidSource
from services.gateway.connections.apart import Apart
from services.gateway.connections.asked_again import AskedAgain
from services.gateway.connections.elsewhere import KINDS as ELSEWHERE
from services.gateway.connections.elsewhere import Elsewhere
from services.gateway.connections.engines import Engines
from services.gateway.connections.former import KINDS as FORMER
from services.gateway.connections.listener import Listener
from services.gateway.connections.metered import measure_clients
from services.gateway.connections.ports import Ports, say_no_more, say_where
from services.gateway.connections.telling import Telling
from services.gateway.management.desk import desk
from services.gateway.observe.observer import Observer
from services.gateway.observe.tracing.allowance import Allowance
from services.gateway.routing.bindings import Bindings
from services.gateway.sessions.broker import Broker
from services.gateway.sessions.permitted import Permits
from services.gateway.sign_in.older_users import OlderUsers
from services.rpc.gateway_pb2_grpc import add_GatewayServicer_to_server
from services.rpc.logs_pb2_grpc import add_LogsServicer_to_server
from services.rpc.metrics_pb2_grpc import add_MetricsServicer_to_server
from services.rpc.router_pb2 import TopologyFrame

_LAST_WRITES = 2.0  # seconds


class Service:
    """One gateway process; any number of them may run, each with its own origin."""

    def __init__(self, settings: Settings, name: str = "gateway") -> None:
        """`name` is of the process, and gives its address; it calls itself by its origin."""
        share(settings.gateways)
        self._settings = settings
        self._address = settings.address_of(name)
        self._server = Server(self._address, ["hopline.gateway.Gateway"])
        self._tasks = Tasks()

    async def start(self) -> None:
        """Returns when clients can connect and log in; raises OSError when the port is taken."""
        settings, telling, serving = self._settings, Telling(), Serving()
        add_GatewayServicer_to_server(telling, self._server.grpc)
        add_MetricsServicer_to_server(serving, self._server.grpc)
        add_LogsServicer_to_server(LogServing(), self._server.grpc)
        await self._server.listen()
        self._store = StoreClient(settings.address_of("store"))
        origin, _ = await self._store.allocate_origin("gateway")
        self._name = f"gateway-{origin}"
        address = await self._reachable()
        await say_where(self._store.put_records, self._name, address)
        try:
            await self._serve(origin, address, telling, serving)
        except BaseException:
            await say_no_more(self._store.put_records, self._name)
            raise

    async def _serve(self, origin: int, address: str, telling: Telling, serving: Serving) -> None:
        settings, prefix, bindings = self._settings, f"{origin}.", Bindings()
        self._keep_records(origin)
        self._topology = self._create_topology(prefix, bindings)
        table = PartitionTable()
        self._apart = Apart(self._meters, settings, bindings.has_exchange)
        observer = self._create_observer(table)
        self._broker = Broker(self._name, UidSource(origin), self._store, self._topology, table, observer, bindings)
        self._older = OlderUsers(settings.sasl_mechanisms, lambda: MgmtClient(settings.address_of("mgmt")))
        self._authenticator = authenticator = Authenticator(settings, self._older, self._audit)
        access = Access(settings.access_control)
        self._follow(table, observer, access)
        await self._topology.start()
        self._broker.publisher.start()
        self._broker.management = self._desk = desk(settings.address_of("mgmt"))
        permits = Permits(access, self._audit)
        self._limits = Limits()
        self._listener = Listener(
            settings, self._broker, authenticator, Engines(settings), prefix, permits, self._limits
        )
        # Who came before the first user is known would be refused with the right password, and before limits, let in.
        limits_known = self._follow_limits()
        await authenticator.until_some_user()
        await access.known()
        await limits_known()
        await self._listener.start()
        self._tasks.start(AskedAgain(authenticator, self._listener.signed_in).run(), name="ask for users again")
        telling.listener, serving.meters = self._listener, self._meters
        measure_clients(self._meters, self._listener, self._bus)
        self._apart.measure(self._listener)
        self._exporting.start()
        self._ports = Ports(self._listener, self._name, self._store.put_records, address)
        self._ports.start(self._store.watch_records([PORT_KIND]))
        await self._server.ready()

    async def _reachable(self) -> str:
        settings = self._settings
        return settings.gateway_advertise or await reachable_address(self._address, settings.address_of("store"))

    def _keep_records(self, origin: int) -> None:
        """Events, the audit log, the ledger and spans."""
        settings, name = self._settings, self._name
        self._bus = EventBus(bus_address(settings), "gateway", name, origin)
        self._bus.start()
        self._audit = Audit(settings, "gateway", name, self._bus.publish)
        self._audit.start()
        self._ledger = Ledger(settings, "gateway", name)
        self._ledger.start()
        self._tracer = Tracer.from_environment(settings, "gateway", name)
        self._meters = meters = Meters("gateway", name)
        wanted = settings.metrics_exchanges or settings.metrics_connections
        self._exporting = Exporting(meters, per_object=wanted)
        measure_process(meters)
        measure_told(meters, self._bus, self._tracer)
        measure_ledger(meters, self._ledger)
        measure_sign_ins(meters, self._audit)

    def _recorder(self) -> Recorder:
        """Who is told what happens to messages: the ledger, and what counts them."""
        recorder = self._ledger.recorder
        if not self._settings.metrics:
            return recorder
        return CountedStages(recorder, self._meters, self._apart.counted)

    def _create_topology(self, prefix: str, bindings: Bindings) -> TopologyClient:
        compiling = Compiling()  # of its own: all changes wait for it, and clients may ask for much

        async def ahead(frame: TopologyFrame) -> object:
            return await compiling.kept(selectors_of(frame))

        return TopologyClient(self._store, self._name, "gateway", prefix, copy=bindings, ahead=ahead)

    def _create_observer(self, table: PartitionTable) -> Observer:
        return Observer(
            self._topology.queues,
            table,
            self._bus,
            self._recorder(),
            self._tracer,
            self._settings.trace_ratio,
            Allowance(self._settings.trace_most),
            self._ledger.captures,
        )

    def _follow(self, table: PartitionTable, observer: Observer, access: Access) -> None:
        """Keeps a copy of what others own: who has which partition, users, rules."""
        store, start = self._store, self._tasks.start
        start(table.follow(store.watch_leases(ROLE)), name="follow leases")
        start(self._authenticator.follow(store.watch_records(KINDS)), name="follow users")
        start(access.follow(store.watch_records(ACCESS_KINDS)), name="follow access")
        start(observer.sampler.follow(store.watch_records([RULE_KIND])), name="follow tracing rules")
        start(report(self._tracer, "gateway", self._name, store.put_records), "spans status")
        start(observer.capture.follow(store.watch_records([CAPTURE_KIND])), name="follow capture rules")
        start(observer.capture.report(self._name, store), "cost of capture")

    def _follow_limits(self) -> Callable[[], Awaitable[None]]:
        """Gives what returns when they are known."""
        store, start, first = self._store, self._tasks.start, FirstSnapshots()
        self._elsewhere = elsewhere = Elsewhere(self._name, self._listener.limited)
        by_rules, former = self._listener.by_rules, self._listener.former
        start(former.follow(first.of(store.watch_records(FORMER))), name="follow whose limits there are")
        start(self._limits.follow(first.of(store.watch_records([*LIMITS]))), name="follow limits")
        start(by_rules.follow(first.of(store.watch_records([LIMIT_RULES]))), name="follow connection limits")
        start(elsewhere.follow(first.of(store.watch_records(ELSEWHERE))), name="follow what is used of limits")
        start(elsewhere.report(store.put_records), name="tell what is used of limits")
        return first.known

    async def stop(self) -> None:
        """Says farewell to clients, then leaves the other services."""
        await self._ports.stop()
        await self._elsewhere.leave(self._store.put_records)
        await self._listener.stop()
        await self._desk.stop()
        await self._authenticator.stop()
        await self._older.stop()
        await self._broker.exclusive.stop()
        await self._audit.stop()
        await self._bus.stop()
        # Clients that closed without waiting for confirms have published all the same.
        await self._broker.publisher.drained(_LAST_WRITES)
        await self._exporting.stop()
        await self._ledger.stop()
        await self._broker.publisher.stop()
        await self._topology.stop()
        await self._tasks.stop()
        await asyncio.to_thread(self._tracer.stop)
        await self._store.close()
        await self._server.stop()
        await asyncio.sleep(0)
