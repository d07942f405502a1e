"""The router as a process: takes the lease, reads the topology, serves it, hands it over."""

from __future__ import annotations

import os
import secrets
import signal
import uuid
from collections.abc import Callable

import structlog

from services.common import plugins
from services.common.bus.address import bus_address
from services.common.bus.event_bus import EventBus
from services.common.clock import monotonic
from services.common.config import Settings
from services.common.errors import Fenced
from services.common.grpc_channel import Server, connect
from services.common.runtime import Tasks
from services.common.uid import UidSource
from services.router.changes import Changes
from services.router.handler import Handler
from services.router.lease import Lease
from services.router.places import Places
from services.router.record_store import RecordStore
from services.router.topology.effects import Effects
from services.router.topology.kinds import Kinds
from services.router.topology.outcome import Outcome
from services.router.topology.records import KINDS
from services.router.topology.topology import Topology
from services.router.watch import Watch
from services.router.watchers import WATCHER, Watchers, read_place
from services.rpc import router_pb2, router_pb2_grpc, store_pb2_grpc

_FIRST_VIRTUAL_HOST = "/"
# Of versions: those of a later holder of the lease are greater than all of an earlier one.
_EPOCH_SHIFT = 40

log = structlog.get_logger()


def end_process() -> None:
    """A router that cannot go on ends as if it were asked to; its supervisor starts the next."""
    os.kill(os.getpid(), signal.SIGTERM)


class Service:
    """`on_lost` is called when this process may no longer be the router."""

    def __init__(self, settings: Settings, on_lost: Callable[[], None] = end_process) -> None:
        self._settings = settings
        self._on_lost = on_lost
        self._address = settings.address_of("router")
        self._member = uuid.uuid4().hex
        self._tasks = Tasks(self._failed)
        self._server = Server(["hopline.router.Router"])
        self._channel = connect(settings.address_of("store"))
        stub = store_pb2_grpc.StoreStub(self._channel)
        self._lease = Lease(stub, self._member, self._address, settings.lease_ttl_ms, self._store_restarted)
        self._store = RecordStore(stub, self._lease)
        self._watchers = Watchers(settings.place_ttl_ms / 1000, monotonic)
        self._bus = EventBus(bus_address(settings), "router", f"router-{self._member[:12]}")
        self._changes: Changes | None = None
        self._watch: Watch | None = None

    async def start(self) -> None:
        """Returns when it is the router and serves; waits for the store and for a former router as long as it takes."""
        self._bus.start()
        await self._lease.acquire()
        self._tasks.start(self._lease.keep(), "lease")
        topology = await self._load()
        changes = Changes(
            topology, self._store, self._watchers, self._lease, self._lease.epoch << _EPOCH_SHIFT, self._bus
        )
        self._changes = changes
        self._tasks.start(changes.run(), "changes")
        if not topology.virtual_hosts:
            await self._create_first(topology, changes)
        await self._serve(topology, changes)
        log.info("router ready", epoch=self._lease.epoch, queues=len(topology.queues))

    async def stop(self) -> None:
        """Ends the streams, which find the next router, and lets go of the lease."""
        if self._watch:
            await self._watch.stop()
        await self._server.stop(0.2)
        await self._tasks.stop()
        await self._lease.release()
        await self._bus.stop()
        await self._channel.close()

    async def _load(self) -> Topology:
        ids = UidSource(await self._store.origin(self._member))
        topology = Topology(_kinds(), self._settings.partitions, lambda: ids.take()[0], _random_name)
        stored = await self._store.list([*KINDS, WATCHER])
        topology.restore((record.kind, record.value) for record in stored if record.kind != WATCHER)
        for record in stored:
            if record.kind == WATCHER:
                self._watchers.expect(read_place(record.value))
        return topology

    async def _create_first(self, topology: Topology, changes: Changes) -> None:
        virtual_host = router_pb2.CreateVirtualHost(name=_FIRST_VIRTUAL_HOST)
        request = router_pb2.ChangeRequest(create_virtual_host=virtual_host)

        def create(effects: Effects) -> Outcome:
            return topology.change(request, effects)

        await changes.submit(create)

    async def _serve(self, topology: Topology, changes: Changes) -> None:
        ttl_ms = self._settings.place_ttl_ms
        places = Places(topology, changes, self._watchers, ttl_ms / 1000)
        self._watch = Watch(topology, changes, self._watchers, places, ttl_ms)
        handler = Handler(topology, changes, self._watchers, self._watch)
        router_pb2_grpc.add_RouterServicer_to_server(handler, self._server.grpc)
        await self._server.listen(self._address)
        # Only from here on can a watcher of the former router come back.
        self._watchers.renew_all()
        self._tasks.start(places.watch_over(), "places")
        self._tasks.start(places.close_orphans(), "orphans")
        await self._server.ready()

    def _store_restarted(self) -> None:
        if self._changes:
            self._changes.restore_transient()

    def _failed(self, failure: BaseException) -> None:
        if isinstance(failure, Fenced):
            log.error("no longer the router, ending", reason=failure.text)
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
