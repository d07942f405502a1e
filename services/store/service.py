"""The store as a process: the data folder, the engine over the configured provider, the gRPC server."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import structlog

from services.common import clock
from services.common.advertise import reachable_address
from services.common.audit.audit import Audit
from services.common.bus.address import bus_address
from services.common.bus.event_bus import EventBus
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.grpc_server import Server
from services.common.log_serving import LogServing
from services.common.metrics.exporting import Exporting
from services.common.metrics.meters import Meters
from services.common.metrics.process import measure_process, measure_told
from services.common.metrics.serving import Serving
from services.common.restored import RECORD_KIND, read
from services.common.runtime import CannotStart, Tasks
from services.common.telemetry.status import report
from services.common.telemetry.tracer import Tracer
from services.rpc.logs_pb2_grpc import add_LogsServicer_to_server
from services.rpc.metrics_pb2_grpc import add_MetricsServicer_to_server
from services.rpc.store_pb2 import PutRecordsRequest, Record
from services.rpc.store_pb2_grpc import add_StoreServicer_to_server
from services.store.addresses import Addresses
from services.store.audit import ChangeAudit
from services.store.choice import choose, for_one_process, insist_on_no_half, one_process
from services.store.commit_spans import CommitSpans
from services.store.commit_times import CommitTimes
from services.store.engine import Engine
from services.store.folder import DataFolder
from services.store.handler import Handler
from services.store.metered import measure_store
from services.store.provider import Elsewhere, Occupied, Provider
from services.store.providers.standing import ENDS
from services.store.standing_by import Presence, stand_by
from services.store.succession import tell

NAME = "hopline.store.Store"

log = structlog.get_logger()


def _end_process(failure: BaseException) -> None:
    # Whoever restarts the process gets a store that reads itself back from what is on disk, and that is consistent.
    log.critical("the store cannot go on and ends", reason=repr(failure), do=ENDS)
    signal.raise_signal(signal.SIGTERM)


class Service:
    """Started and stopped by the command line."""

    def __init__(self, settings: Settings, provider: Provider | None = None, name: str = "store") -> None:
        """`provider`, if it is to be another one than the settings name; `name` is store, or store-1, store-2, or so.

        Raises CannotStart where there are to be several processes, and the provider is for one.
        """
        self._settings = settings
        self._addresses = Addresses.of(settings, name)
        self._folder = DataFolder(settings.data)
        chosen = choose(settings)
        self._provider_name = chosen.shown
        self._provider = provider = provider or chosen.make(settings.data)
        self._in_folder = for_one_process(provider)
        if settings.store_processes > 1 and self._in_folder:
            raise CannotStart(one_process(chosen.shown))
        self._instance = f"{name}-{uuid.uuid4().hex[:12]}"
        self._bus = EventBus(bus_address(settings), "store", self._instance)
        self._audit = Audit(settings, "store", self._instance, self._bus.publish)
        self._tracer = Tracer.from_environment(settings, "store", self._instance)
        self._meters = Meters("store", self._instance)
        self._exporting = Exporting(self._meters)
        self._engine = Engine(
            provider,
            settings.lease_ttl_ms,
            clock.monotonic,
            _end_process,
            self._bus,
            CommitSpans(self._tracer, chosen.shown),
            settings.disk_reserve,
            CommitTimes(self._meters),
        )
        measure_process(self._meters)
        measure_told(self._meters, self._bus, self._tracer)
        measure_store(self._meters, self._engine, self._bus, self._audit)
        self._server = Server(self._addresses.serving, [NAME], self._tracer)
        self._own = Server(self._addresses.own, []) if self._addresses.own else None
        self._tasks = Tasks()
        self._presence = Tasks()

    async def start(self) -> None:
        """Returns when everything is read back and calls are served; raises InternalError when it cannot be.

        Where another process writes it stands by for as long as that does.
        """
        if self._own:
            add_MetricsServicer_to_server(Serving(self._meters), self._own.grpc)
            add_LogsServicer_to_server(LogServing(), self._own.grpc)
            await self._own.listen()
        try:
            await self._open()
        except BaseException:
            await self._leave()
            raise
        await self._serve()

    async def _open(self) -> None:
        if self._in_folder:
            self._folder.take()
        if not isinstance(self._provider, Elsewhere):
            await insist_on_no_half(self._provider, self._settings.data)
            await self._engine.start()
            return
        self._folder.make()
        try:
            await self._take_over(self._provider)
        except BaseException:
            await self._provider.close()
            raise

    async def _take_over(self, provider: Elsewhere) -> None:
        while True:
            await stand_by(provider, self._stands_by)
            await self._presence.stop()
            try:
                await self._engine.start()
            except Occupied as other:
                log.info("another store process was faster", reason=other.text)
            else:
                return

    async def _stands_by(self) -> None:
        if self._own:
            await self._own.ready()
            presence, store = await self._present(), StoreClient(self._addresses.store)
            self._presence.start(_closing(store, presence.keep(store.keep_alive, writes=False)), "presence")

    async def _present(self) -> Presence:
        settings, own = self._settings, self._settings.store_process_advertise
        with suppress(OSError):  # the store's name leads nowhere yet: this process is heard of without an address
            own = own or await reachable_address(self._addresses.own, self._addresses.store)
        return Presence(self._instance, own, settings.lease_ttl_ms)

    async def _serve(self) -> None:
        add_StoreServicer_to_server(
            Handler(self._engine, ChangeAudit(self._engine.records, self._audit)), self._server.grpc
        )
        add_MetricsServicer_to_server(Serving(self._meters), self._server.grpc)
        add_LogsServicer_to_server(LogServing(), self._server.grpc)
        await self._server.listen()
        await self._engine.sure()  # it may have stood still since all was read, and another one have begun
        self._addresses.lead()
        self._engine.leases.listening()
        self._tell_others()
        self._bus.start()
        self._audit.start()
        self._exporting.start()
        self._tasks.start(report(self._tracer, "store", self._instance, self._put_records), "spans status")
        await self._server.ready()
        if self._own:
            await self._own.ready()
            presence = await self._present()
            self._presence.start(presence.keep(self._engine.keep_alive, writes=True), "presence")
        self._tell_restored()
        log.info("store ready", provider=self._provider_name, address=self._addresses.store)

    async def stop(self) -> None:
        """Ends the streams, then closes the provider: what was acknowledged is on disk already."""
        self._engine.leases.closing()
        # Journals and watches never end by themselves; what is being committed takes milliseconds.
        await self._server.stop(grace=0.2)
        await self._tasks.stop()
        await self._presence.stop()
        await self._engine.stop()
        await self._exporting.stop()
        await self._audit.stop()
        await self._bus.stop()
        await asyncio.to_thread(self._tracer.stop)
        await self._leave()

    async def _leave(self) -> None:
        await self._presence.stop()
        if self._own:
            await self._own.stop(grace=0.0)
        self._folder.release()

    def _tell_others(self) -> None:
        if self._own and isinstance(self._provider, Elsewhere):
            telling = tell(self._instance, self._engine.incarnation, self._addresses.writers)
            self._tasks.start(telling, "telling who writes")

    def _tell_restored(self) -> None:
        records = (record for message in self._engine.records.snapshot([RECORD_KIND]) for record in message.records)
        if restored := read(records):
            log.warning(str(restored), do="nothing: docs/backups.md says what that means")

    async def _put_records(self, puts: Sequence[Record], deletes: Sequence[Record]) -> int:
        return await self._engine.records.put(PutRecordsRequest(puts=puts, deletes=deletes))


async def _closing(store: StoreClient, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    finally:
        await store.close()
