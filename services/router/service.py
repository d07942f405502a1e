"""The router as a process: follows the one that writes, or is it as long as it holds the lease."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import uuid
from collections.abc import Callable, Mapping

import structlog

from services.common import plugins
from services.common.advertise import reachable_address
from services.common.bus.address import bus_address
from services.common.bus.event_bus import EventBus
from services.common.clients.first_snapshot import FirstSnapshots
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.errors import Fenced
from services.common.grpc_server import Server
from services.common.limits import QUEUES, VIRTUAL_HOST, Limits, Subject
from services.common.log_serving import LogServing
from services.common.metrics.exporting import Exporting
from services.common.metrics.meters import Meters
from services.common.metrics.process import measure_process, measure_told
from services.common.metrics.serving import Serving
from services.common.runtime import Tasks
from services.common.telemetry.status import report
from services.common.telemetry.tracer import Tracer
from services.common.topology.records import Record, RecordKey
from services.common.uid import UidSource
from services.router.follower import Follower
from services.router.handler import Handler
from services.router.lease import DEPOSED, Lease
from services.router.metered import measure_changes, measure_router
from services.router.record_store import RecordStore
from services.router.topology.kinds import Kinds
from services.router.topology.topology import Topology
from services.router.writer import Writer
from services.rpc import logs_pb2_grpc, metrics_pb2_grpc, router_pb2_grpc

NAME = "hopline.router.Router"

log = structlog.get_logger()


def end_process() -> None:
    """A router that cannot go on ends as if it were asked to; its supervisor starts the next."""
    os.kill(os.getpid(), signal.SIGTERM)


class Service:
    """`name` is router, router-2, …; `on_lost` is called when this process may not write any more."""

    def __init__(self, settings: Settings, name: str = "router", on_lost: Callable[[], None] = end_process) -> None:
        self._settings = settings
        self._on_lost = on_lost
        self._address = settings.address_of(name)
        self._member = f"router-{uuid.uuid4().hex[:12]}"
        self._tasks = Tasks(self._failed)
        self._tracer = Tracer.from_environment(settings, "router", self._member)
        self._server = Server(self._address, [NAME], self._tracer)
        self._handler = Handler(self._member)
        self._store = StoreClient(settings.address_of("store"))
        self._bus = EventBus(bus_address(settings), "router", self._member)
        self._lease: Lease | None = None
        self._follower: Follower | None = None
        self._writer: Writer | None = None
        self._ready = asyncio.Event()
        self._limits = Limits()
        self._first = FirstSnapshots()
        self._measure()

    def _measure(self) -> None:
        meters = Meters("router", self._member)
        self._exporting = Exporting(meters)
        measure_process(meters)
        measure_told(meters, self._bus, self._tracer)
        measure_router(meters, self._known, lambda: self._writer is not None)
        measure_changes(meters, self._bus)
        metrics_pb2_grpc.add_MetricsServicer_to_server(Serving(meters), self._server.grpc)
        logs_pb2_grpc.add_LogsServicer_to_server(LogServing(), self._server.grpc)

    def _known(self) -> Topology | None:
        role = self._writer or self._follower
        return role.topology if role else None

    async def start(self) -> None:
        """Returns when it writes, or follows a router that does; waits for the store as long as it takes."""
        self._bus.start()
        self._exporting.start()
        router_pb2_grpc.add_RouterServicer_to_server(self._handler, self._server.grpc)
        await self._server.listen()
        self._lease = Lease(self._store, self._member, await self._reachable(), self._settings.lease_ttl_ms)
        self._lease.on_lost = self._on_lost
        await self._lease.start()
        limits = self._first.of(self._store.watch_records([VIRTUAL_HOST]))
        self._tasks.start(self._limits.follow(limits), "follow limits")
        self._tasks.start(self._become(self._lease), "role")
        self._tasks.start(report(self._tracer, "router", self._member, self._store.put_records), "spans status")
        await self._ready.wait()
        await self._server.ready()

    async def stop(self) -> None:
        """Ends the streams, which find the next router, and lets go of the lease."""
        self._handler.role = None
        if self._writer:
            await self._writer.stop()
        await self._server.stop(0.2)
        await self._tasks.stop()
        if self._follower:
            await self._follower.stop()
        if self._lease:
            await self._lease.stop()
        await self._exporting.stop()
        await self._bus.stop()
        await asyncio.to_thread(self._tracer.stop)
        await self._store.close()

    async def _become(self, lease: Lease) -> None:
        """First one that follows, unless nobody writes; then, when the lease is free, the one that does."""
        follower = self._follower = Follower(self._store, self._member, lambda: self._topology(0), lease.hears_store)
        follower.when_routers_change(lease.look_again)
        lease.on_store_restart = follower.store_restarted
        following = self._tasks.start(self._follow(follower), "follow")
        await lease.acquired()
        following.cancel()
        lost = follower.lost()
        self._handler.role = self._follower = None
        # Before there is anybody to give places: it would follow its own process.
        await follower.stop(leave=False)
        await self._write(lease, lost)

    async def _follow(self, follower: Follower) -> None:
        await follower.start()
        self._handler.role = follower
        self._ready.set()
        log.info("router follows", member=self._member)

    async def _write(self, lease: Lease, lost: Mapping[RecordKey, Record]) -> None:
        await self._first.known()  # else the limit of a virtual host would not hold in the first moments
        records = RecordStore(self._store, lease)
        topology = self._topology(await records.origin(self._member))
        writer = self._writer = Writer(topology, records, lease, self._settings.place_ttl_ms, self._bus, self._failed)
        await writer.start(self._member, lost)
        self._handler.role = writer
        self._ready.set()
        log.info("router writes", epoch=lease.epoch, queues=len(topology.queues))

    async def _reachable(self) -> str:
        settings = self._settings
        return settings.router_advertise or await reachable_address(self._address, settings.address_of("store"))

    def _topology(self, origin: int) -> Topology:
        ids = UidSource(origin)
        return Topology(_kinds(), self._settings.partitions, lambda: ids.take()[0], _random_name, self._most_queues)

    def _most_queues(self, virtual_host: str) -> int | None:
        return self._limits.of(Subject(VIRTUAL_HOST, virtual_host), QUEUES)

    def _failed(self, failure: BaseException) -> None:
        if isinstance(failure, Fenced):
            log.error("no longer the router, ending", reason=failure.text, do=DEPOSED)
        self._on_lost()


def _kinds() -> Kinds:
    return Kinds(
        {name: plugins.load("exchange_types", name) for name in plugins.names("exchange_types")},
        plugins.names("queue_types"),
        plugins.names("overflow_policies"),
    )


def _random_name() -> str:
    # 16 random bytes are 22 characters, as in RabbitMQ's amq.gen- names.
    return secrets.token_urlsafe(16)
