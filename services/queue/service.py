"""A queue process: its clients of store and router, its partitions, its gRPC server."""

from __future__ import annotations

import asyncio
import uuid
from functools import partial

import structlog

from services.common import plugins
from services.common.advertise import reachable_address
from services.common.bus.address import bus_address
from services.common.bus.event_bus import EventBus
from services.common.clients.leases import Leases
from services.common.clients.partition_table import ROLE, PartitionTable
from services.common.clients.publisher import Publisher
from services.common.clients.store import Journal, StoreClient
from services.common.clients.topology import TopologyClient
from services.common.config import Settings
from services.common.ledger.ledger import Ledger
from services.common.ledger.recorder import Recorder
from services.common.log_serving import LogServing
from services.common.memory import available, for_messages
from services.common.metrics.catalogue.queues import JOURNAL
from services.common.metrics.exporting import Exporting
from services.common.metrics.meters import Meters
from services.common.metrics.process import measure_ledger, measure_process, measure_told
from services.common.metrics.serving import Serving
from services.common.metrics.stages import CountedStages
from services.common.partition import TAKEN_OVER
from services.common.placement import RECORD_KIND
from services.common.runtime import Tasks
from services.common.streams.grpc_fields import path_of
from services.common.streams.server import StreamServer
from services.common.telemetry.status import report
from services.common.telemetry.tracer import Tracer
from services.common.topology.slots import SlotId
from services.common.uid import UidSource
from services.queue.counting import Counting
from services.queue.dead_letters.office import DeadLetterOffice
from services.queue.host import Host
from services.queue.journal.writer import JournalWriter
from services.queue.links.full import Gate
from services.queue.links.gateways import KINDS as GATEWAYS
from services.queue.links.peer_stream import PeerStream
from services.queue.metered import MeteredJournal, count_each, measure_host
from services.queue.observe.journeys import Journeys
from services.queue.partitions.definitions import Definitions
from services.queue.partitions.partition import Partition
from services.queue.partitions.partitions import Partitions
from services.queue.partitions.pins import Pins
from services.queue.partitions.registry import Registry
from services.queue.partitions.sisters import Together, member_of, together
from services.queue.partitions.taken_over import has_taken_over
from services.queue.timers import Timers
from services.rpc.counts_pb2_grpc import add_CountsServicer_to_server
from services.rpc.logs_pb2_grpc import add_LogsServicer_to_server
from services.rpc.metrics_pb2_grpc import add_MetricsServicer_to_server
from services.rpc.queue_pb2 import DESCRIPTOR

_QUEUE = DESCRIPTOR.services_by_name["Queue"]

log = structlog.get_logger()


class Service:
    """Started and stopped by the command line; `name` is queue-1, queue-2, …."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._address = settings.address_of(name)
        self._store = StoreClient(settings.address_of("store"))
        self._journal = Journal(settings.address_of("store"), name)
        self._tasks = Tasks()
        # Another one at each start: what the former incarnation held must not be taken for this one's.
        self._member = member_of(name, uuid.uuid4().hex[:12])
        self._tracer = Tracer.from_environment(settings, "queue", self._member)
        self._meters = Meters("queue", self._member)
        self._exporting = Exporting(self._meters, per_object=settings.metrics_queues)
        self._table = PartitionTable()
        self._server = StreamServer(self._address, [_QUEUE.full_name])

    async def start(self) -> None:
        """Returns when the partitions that were free are served; waits for store and router as long as it takes."""
        origin, _ = await self._store.allocate_origin(self._name)
        self._advertised = await self._reachable()
        uids = UidSource(origin)
        self._topology = TopologyClient(self._store, self._member, ROLE, "")
        registry = Registry(self._topology.queues, self._topology.has_place)
        ids = UidSource(origin)
        self._bus = EventBus(bus_address(self._settings), "queue", self._member, origin)
        self._bus.start()
        self._ledger = Ledger(self._settings, "queue", self._member)
        self._ledger.start()
        recorder = self._recorder()
        writer = JournalWriter(MeteredJournal(self._journal, self._meters.histogram(JOURNAL)), ids, self._fenced)
        self._host = Host(
            registry,
            writer,
            ids,
            self._topology,
            self._store,
            Gate(self._settings.queue_memory or for_messages(available(), 1)),
            self._bus,
            recorder,
        )
        measure_host(self._meters, self._host)
        self._publisher = self._create_publisher(uids)
        office = self._create_office(registry, recorder)
        self._host.journeys = Journeys(self._tracer, self._settings.trace_link_after)
        self._tasks.start(report(self._tracer, "queue", self._member, self._store.put_records), "spans status")
        self._partitions = Partitions(
            self._host,
            office,
            self._store,
            self._settings.partitions,
            plugins.load("placements", self._settings.placement)(),
            self._together(),
        )
        pins = self._store.watch_records([RECORD_KIND])
        self._tasks.start(Pins(self._partitions.pin).follow(pins), "pins")
        gateways = self._store.watch_records(GATEWAYS)
        self._tasks.start(self._host.gateways.follow(gateways), "gateways")
        # A member before it can serve, so that those who start together share out what is free as it shall stay.
        self._exporting.start()
        await self._partitions.join(self._leases())
        await self._open(registry)
        office.start()
        Timers(self._host, self._topology.has_place).start()
        await self._serve()
        log.info("queue process ready", name=self._name, partitions=len(registry.partitions), address=self._advertised)

    def _together(self) -> Together:
        settings = self._settings
        return together(self._name, settings.queue_processes, settings.lease_ttl_ms / 2000, settings.run_folder)

    def _recorder(self) -> Recorder:
        """Who is told what happens to messages: the ledger, and whoever counts."""
        meters, recorder = self._meters, self._ledger.recorder
        measure_process(meters)
        measure_told(meters, self._bus, self._tracer)
        measure_ledger(meters, self._ledger)
        if not self._settings.metrics:
            return recorder
        queues = [count_each(meters, self._topology)] if self._settings.metrics_queues else []
        return CountedStages(recorder, meters, queues)

    def _create_office(self, registry: Registry, recorder: Recorder) -> DeadLetterOffice:
        host = self._host
        return DeadLetterOffice(registry, self._topology, self._publisher, host.tasks, host.until_certain, recorder)

    async def _serve(self) -> None:
        """Returns when what was free is served. Whoever is to stop meanwhile has what is nowhere else by then."""
        try:
            await self._partitions.start(self._advertised)
            await self._server.ready()
        except asyncio.CancelledError:
            await self.stop()
            raise

    def kept(self) -> int:
        """Bytes of the messages that are here."""
        return self._host.account.used

    async def stop(self) -> None:
        """Hands the partitions over, then ends the links."""
        await self._partitions.stop()
        await self._server.stop()
        await self._exporting.stop()
        await self._bus.stop()
        await self._ledger.stop()
        await self._host.tasks.stop()
        await self._tasks.stop()
        await self._publisher.stop()
        await self._topology.stop()
        await self._journal.stop()
        await asyncio.to_thread(self._tracer.stop)
        await self._store.close()

    async def _open(self, registry: Registry) -> None:
        # Before who forgets what was counted of a deleted queue: its last messages are counted when it is.
        self._topology.listeners.insert(0, Definitions(registry))
        await self._topology.start()
        await self._journal.start()
        self._server.tell(TAKEN_OVER, lambda: has_taken_over(registry, self._table, self._member))
        self._server.add_stream(
            path_of(_QUEUE.methods_by_name["Attach"]), partial(PeerStream, self._host, self._member)
        )
        add_CountsServicer_to_server(Counting(registry), self._server)  # type: ignore[arg-type]  # as it is for health
        add_MetricsServicer_to_server(Serving(self._meters), self._server)  # type: ignore[arg-type]  # as above
        add_LogsServicer_to_server(LogServing(), self._server)  # type: ignore[arg-type]  # as above
        await self._server.listen()
        self._publisher.start()

    async def _reachable(self) -> str:
        settings = self._settings
        return settings.queue_advertise or await reachable_address(self._address, settings.address_of("store"))

    def _create_publisher(self, uids: UidSource) -> Publisher:
        """Dead letters go to queue processes as a gateway's messages do, this very process among them."""
        table = self._table
        self._tasks.start(table.follow(self._store.watch_leases(ROLE)), "lease table")
        table.listeners.append(lambda: self._partitions.owners_changed(table.owners, room=not table.unwritable))
        definitions = self._topology.queues

        def partition_of(queue_id: SlotId) -> int | None:
            definition = definitions.get(queue_id)
            return definition.partition if definition else None

        return Publisher(self._name, uids, table, partition_of)

    def _leases(self) -> Leases:
        settings = self._settings
        return Leases(
            self._store,
            settings.address_of("store"),
            self._member,
            ROLE,
            "",
            settings.lease_ttl_ms,
            self._partitions,
        )

    def _fenced(self, partition: Partition) -> None:
        self._partitions.fenced(partition)
