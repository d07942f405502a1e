"""How each process of the cluster is made from its real service, and with what settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from argon2 import PasswordHasher

from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.runtime import Service
from services.common.users import User
from services.gateway.service import Service as GatewayService
from services.mgmt.ledger.filer import Filer
from services.queue.service import Service as QueueService
from services.router.service import Service as RouterService
from services.store.provider import Provider
from services.store.providers.apart import Apart
from services.store.providers.apart_halves import Join
from services.store.service import Service as StoreService
from tests.simulation.world.addresses import Network
from tests.simulation.world.nats_server import PORT as NATS_PORT
from tests.simulation.world.nats_server import Disk as NatsDisk
from tests.simulation.world.nats_server import NatsListener
from tests.simulation.world.processes import Host
from tests.simulation.world.provider import SimulatedProvider
from tests.simulation.world.shape import Shape

RPC_PORT = 7000
AMQP_PORT = 5672
STORE = f"store-1:{RPC_PORT}"
Create = Callable[[Host], Service]

# Of the cheapest parameters that there are: a login costs next to nothing.
GUEST = User(
    name="guest",
    password_hash=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("guest", salt=b"simulation-salt"),
    tags=("administrator",),
)


def settings(shape: Shape, folder: Path) -> Settings:
    """What all processes have in common."""
    return Settings(
        data=folder,
        store_address=STORE,
        router_address=f"0.0.0.0:{RPC_PORT}",
        queue_address=f"0.0.0.0:{RPC_PORT}",
        gateway_address=f"0.0.0.0:{RPC_PORT}",
        nats_url=f"nats://nats-1:{NATS_PORT}",
        amqp_host="0.0.0.0",  # the network has no families
        amqp_port=AMQP_PORT,
        partitions=shape.partitions,
        queue_processes=shape.queue_processes,
        lease_ttl_ms=shape.lease_ttl_ms,
        place_ttl_ms=shape.place_ttl_ms,
        queue_memory=shape.queue_memory,
        heartbeat=shape.heartbeat,
        ledger_seconds=2.0,
        audit=False,
        sasl_mechanisms=("PLAIN",),
    )


class Nats:
    """NATS as a service."""

    def __init__(self, network: Network, disk: NatsDisk) -> None:
        self._network = network
        self._disk = disk

    async def start(self) -> None:
        NatsListener(self._network, self._disk)

    async def stop(self) -> None:
        """It ends with its process."""


class Filing:
    """mgmt as far as it files the ledger."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._store = StoreClient(settings.address_of("store"))
        self._filer = Filer(settings, self._store, name)
        self._filer._pace.hurry()  # rests are for a core that is shared

    async def start(self) -> None:
        self._filer.start()

    async def stop(self) -> None:
        await self._filer.stop()
        await self._store.close()


class Makers:
    """Makes the service of each name."""

    def __init__(
        self,
        network: Network,
        shape: Shape,
        folder: Path,
        provider: SimulatedProvider,
        records: SimulatedProvider | None,
    ) -> None:
        """`records`: where configuration is, if that is apart."""
        self._records = records
        self.settings = settings(shape, folder)
        self.nats = NatsDisk()
        self._network = network
        self._folder = folder
        self._provider = provider
        self._lives = 0

    def maker(self, name: str) -> Create:
        """By what the name begins with."""
        kinds: dict[str, Create] = {
            "store": self._store,
            "router": self._router,
            "queue": self._queue,
            "gateway": self._gateway,
            "nats": lambda _host: Nats(self._network, self.nats),
            "mgmt": self._mgmt,
        }
        return kinds[name.partition("-")[0]]

    def _store(self, _host: Host) -> Service:
        # A folder for each life: a killed store has not let go of the lock here, as its real process would have.
        self._lives += 1
        own = self.settings.model_copy(update={"data": self._folder / f"store-{self._lives}"})
        return StoreService(own, self._provider if self._records is None else self._both(self._records))

    def _both(self, records: SimulatedProvider) -> Provider:
        return Apart(self._provider, records, Join("the messages", "the configuration"), self._folder)

    def _router(self, host: Host) -> Service:
        own = self.settings.model_copy(update={"router_advertise": f"{host.address}:{RPC_PORT}"})
        return RouterService(own, host.name)

    def _queue(self, host: Host) -> Service:
        own = self.settings.model_copy(update={"queue_advertise": f"{host.address}:{RPC_PORT}"})
        return QueueService(own, host.name)

    def _gateway(self, host: Host) -> Service:
        return GatewayService(self.settings.model_copy(update={"gateway_advertise": f"{host.address}:{RPC_PORT}"}))

    def _mgmt(self, host: Host) -> Service:
        self._lives += 1
        return Filing(self.settings, f"{host.name}-{self._lives}")
