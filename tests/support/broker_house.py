"""A whole broker in one process: store in memory, router, queue processes and gateways, over unix sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

from services.common.clients.leases import Leases
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.first_user import GUEST
from services.common.grpc_server import Server
from services.common.limits import VIRTUAL_HOST, Subject
from services.gateway.service import Service as GatewayService
from services.mgmt.access.grants import Grants
from services.mgmt.beginning import begin
from services.mgmt.users import Users
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.service import Service as QueueService
from services.router.service import Service as RouterService
from services.rpc.mgmt_pb2_grpc import MgmtServicer, add_MgmtServicer_to_server
from tests.support.amqp_client import AmqpClient
from tests.support.ports import free_port
from tests.support.programs import until
from tests.support.queue_house import House as QueueHouse

_LOOKS, _LOOK_SECONDS = 250, 0.02


async def die(leases: Leases) -> None:
    """In place of `Leases.stop`: the store is not told, and the leases run out."""
    await leases._tasks.stop()
    if leases._watchdog:
        leases._watchdog.cancel()


def _is_served(partition: Partition) -> bool:
    return partition.state is PartitionState.SERVING


class BrokerHouse:
    """Runs inside of `async with`, or from `start` to `stop`; `connect` gives clients of one of the gateways."""

    def __init__(self, folder: Path, gateways: int = 2, queues: int = 2, **settings: Any) -> None:
        self._inner = QueueHouse(folder, **settings)
        self._queue_names = [f"queue-{number}" for number in range(2, queues + 1)]
        self.ports = [free_port() for _ in range(gateways)]
        self.gateways: list[GatewayService] = []
        self.clients: list[AmqpClient] = []
        self._mgmt: Server | None = None

    @property
    def topology(self) -> Any:
        """A watcher of the router."""
        return self._inner.topology

    @property
    def settings(self) -> Any:
        """What all services have in common."""
        return self._inner.settings

    @property
    def store(self) -> Any:
        """The store's service."""
        return self._inner.store

    @property
    def queues(self) -> dict[str, Any]:
        """The queue processes by name."""
        return self._inner.queues

    def address_of(self, service: str) -> str:
        """The gRPC target of a service."""
        return self._inner.settings.address_of(service)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Returns when clients can connect, and partitions have gone where they stay."""
        await self._inner.start()
        for name in self._queue_names:
            await self._inner.start_queue(name)
        store = StoreClient(self._inner.settings.address_of("store"))
        await begin(Users(store), Grants(store), GUEST)
        await store.close()
        for number in range(1, len(self.ports) + 1):
            await self._start_gateway(number)
        for _ in range(_LOOKS):
            if self._is_balanced():
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_balanced(self) -> bool:
        counts = [sum(map(_is_served, queue._host.registry.partitions.values())) for queue in self.queues.values()]
        return sum(counts) == self._inner.settings.partitions and max(counts) - min(counts) <= 1

    async def start_queue(self, name: str) -> None:
        """One more queue process; returns when it serves its share."""
        await self._inner.start_queue(name)

    async def start_gateway(self, port: int = 0) -> int:
        """One more, at a free port for 0; returns when clients can log in, and gives its number for `connect`."""
        self.ports.append(port or free_port())
        await self._start_gateway(len(self.ports))
        return len(self.ports) - 1

    async def _start_gateway(self, number: int) -> None:
        gateway = GatewayService(self.settings_at(number))
        await gateway.start()
        self.gateways.append(gateway)

    def settings_at(self, number: int) -> Settings:
        """Those of the gateway of that number, and of who connects to it."""
        address = f"unix:{self.settings.run_folder}/gateway-{number}.sock"
        at = {"amqp_port": self.ports[number - 1], "amqp_host": "127.0.0.1", "gateway_address": address}
        return self.settings.model_copy(update=at)

    async def until_limited(self, subject: Subject, what: str, number: int | None) -> None:
        """Until gateways, and the router, hold a user or a virtual host to that limit; None: to none."""
        its = [gateway._limits for gateway in self.gateways]
        if subject.kind == VIRTUAL_HOST:
            its.append(self._inner.router._limits)
        await until(lambda: all(limits.of(subject, what) == number for limits in its))

    async def stop_router(self) -> None:
        """The only router leaves."""
        await self._inner.router.stop()

    async def start_router(self) -> None:
        """The next one; returns when it writes."""
        self._inner.router = RouterService(self._inner.settings)
        await self._inner.router.start()

    async def fall(self) -> None:
        """All but the store and the gateways are gone without notice: the lease table names them for a while."""
        with patch.object(Leases, "stop", die):
            for queue in self.queues.values():
                await queue.stop()
            await self._inner.router.stop()

    async def occupy(self) -> None:
        """mgmt listens where the router was."""
        self._mgmt = Server(self.address_of("router"), ["hopline.mgmt.Mgmt"])
        add_MgmtServicer_to_server(MgmtServicer(), self._mgmt.grpc)
        await self._mgmt.listen()
        await self._mgmt.ready()

    async def come_back(self) -> None:
        """The router is where a queue process was, that one where another was; returns when all is served."""
        settings, names = self._inner.settings, list(self.queues)
        addresses = [self.address_of(name) for name in [*names, "mgmt"]]
        moved = settings.model_copy(update={"router_address": addresses[0]})
        self._inner.router = RouterService(moved)
        starting = [self._inner.router.start()]
        for name, address in zip(names, addresses[1:], strict=True):
            service = self.queues[name] = QueueService(settings.model_copy(update={"queue_address": address}), name)
            starting.append(service.start())
        await asyncio.gather(*starting)

    async def stop(self) -> None:
        """Ends clients, then services."""
        for client in self.clients:
            client.abort()
        for gateway in self.gateways:
            await gateway.stop()
        await self._inner.stop()
        if self._mgmt:
            await self._mgmt.stop(0)

    async def connect(self, gateway: int = 0, port: int = 0, **options: Any) -> AmqpClient:
        """A client with channel 1 open, at a gateway or another port."""
        client = AmqpClient()
        self.clients.append(client)
        await client.open(port or self.ports[gateway], **options)
        return client
