"""The broker of a world: its processes, and everything that can happen to them. See the package's docstring."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from services.common.clients.calls import result
from services.common.clients.partition_table import ROLE
from services.common.clients.placement import PlacementClient
from services.common.clients.store import StoreClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.common.errors import BrokerError
from services.common.grpc_channel import connect
from services.common.users import RECORD_KIND
from services.rpc.router_pb2 import ChangeRequest, Policy, PolicyKey
from services.rpc.router_pb2_grpc import RouterStub
from services.rpc.store_pb2 import Record
from tests.simulation.world.addresses import Network
from tests.simulation.world.ledger import Ledger
from tests.simulation.world.provider import Disk, SimulatedProvider
from tests.simulation.world.services import AMQP_PORT, GUEST, RPC_PORT, STORE, Makers
from tests.simulation.world.shape import Shape
from tests.simulation.world.supervisor import Supervised

if TYPE_CHECKING:
    from services.rpc.router_pb2_grpc import RouterAsyncStub

_LOOK = 0.05  # seconds between looks at whether all serve
_LONG = 10.0  # seconds for a change of the topology
_STARVED = 0.003  # seconds of a turn


class Cluster:
    """Names are those of `processes`, and of clients' hosts where two ends are named."""

    def __init__(self, network: Network, shape: Shape, random: Random, folder: Path) -> None:
        """`random` is the disk's."""
        self.shape = shape
        self.provider: SimulatedProvider
        self._network = network
        self._loop = network.loop
        self._folder = folder
        self._disk = Disk(random, shape.commit, lambda: self._loop.now)
        self._disks = [self._disk]
        if shape.apart:
            self._chance = Random(random.random())
            self._disks.append(Disk(Random(self._chance.random()), shape.commit, lambda: self._loop.now))
        self._supervised: dict[str, Supervised] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    # ------------------------------------------------------------- the processes

    @property
    def processes(self) -> list[str]:
        """All names, dead or alive."""
        return list(self._supervised)

    @property
    def amqp_addresses(self) -> list[tuple[str, int]]:
        """Of all gateways."""
        return [(name, AMQP_PORT) for name in self._supervised if name.startswith("gateway-")]

    def is_running(self, name: str) -> bool:
        """Whether it lives and has begun to serve."""
        return self._supervised[name].running is not None

    def lives(self, name: str) -> int:
        """How often it was started."""
        return self._supervised[name].lives

    def service(self, name: str) -> Any:
        """The object that serves there; None while it does not."""
        return self._supervised[name].running

    def ledger(self) -> Ledger:
        """What reached NATS, each batch once."""
        return Ledger(kept.data for kept in self._makers.nats.told)

    def unfiled(self) -> int:
        """Batches that NATS has and that are not filed."""
        return len(self._makers.nats.waiting)

    def memory_accounts(self) -> dict[str, int]:
        """Bytes that the queue processes which run account for, without what queues know of messages that are gone."""
        found = {name: self.service(name) for name in self._supervised if name.startswith("queue-")}
        hosts = {name: service._host for name, service in found.items() if service is not None}
        return {
            name: host.account.used - sum(queue.features.size for queue in host.registry.queues.values())
            for name, host in hosts.items()
        }

    # -------------------------------------------------------------- up and down

    async def start(self) -> None:
        """Returns when clients can connect."""
        self.provider = SimulatedProvider(self._folder, self._disk)
        shape = self.shape
        records = SimulatedProvider(self._folder, self._disks[1]) if shape.apart else None
        self._makers = Makers(self._network, shape, self._folder, self.provider, records)
        counts = {"store": 1, "nats": 1, "router": shape.routers, "queue": shape.queue_processes}
        for kind, count in {**counts, "gateway": shape.gateways, "mgmt": int(shape.filing)}.items():
            for number in range(1, count + 1):
                self._add(f"{kind}-{number}")
        store = StoreClient(STORE)
        await store.put_records([Record(kind=RECORD_KIND, key=GUEST.name, value=GUEST.to_json())])
        await store.close()
        await self._serving()

    async def create_virtual_host(self, name: str) -> None:
        """As `hopline vhosts add`; again and again until it is there."""
        while True:
            try:
                async with VirtualHostsClient(f"router-1:{RPC_PORT}") as client:
                    return await client.create(name)
            except BrokerError:
                await asyncio.sleep(_LOOK)

    def add_queue_process(self) -> str:
        """Gives its name."""
        return self._add(f"queue-{1 + sum(name.startswith('queue-') for name in self._supervised)}")

    def _add(self, name: str) -> str:
        one = self._supervised[name] = Supervised(self._network, name, self._makers.maker(name))
        one.start()
        return name

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self._supervised[name].kill()

    def stop(self, name: str) -> None:
        """SIGTERM."""
        self._supervised[name].stop()

    def stop_for_good(self, name: str) -> None:
        """SIGTERM, and it is not started again."""
        self._supervised[name].for_good = True
        self.stop(name)

    def start_again(self, name: str) -> None:
        """Unless it lives."""
        self._supervised[name].start()

    async def heal(self) -> None:
        """Ends all faults and starts what is dead; returns when everything serves."""
        self._network.heal()
        for disk in self._disks:
            disk.heal()
        for one in self._supervised.values():
            if process := one.process:
                process.starved = 0.0
                self._loop.awaken(process)
                while process.held:
                    self._loop.release(process)
        await self._serving()

    # -------------------------------------------------------------- faults

    def pause(self, name: str, seconds: float) -> None:
        """SIGSTOP and SIGCONT."""
        if process := self._supervised[name].process:
            self._loop.hold(process)
            self._loop.after(seconds, self._loop.kernel, self._loop.release, process)

    def starve(self, name: str, seconds: float) -> None:
        """Each of its turns takes long."""
        if process := self._supervised[name].process:
            process.starved = _STARVED
            self._loop.after(seconds, self._loop.kernel, setattr, process, "starved", 0.0)

    def suspend(self, seconds: float) -> None:
        """The machine of the cluster sleeps."""
        for one in self._supervised.values():
            if process := one.process:
                self._loop.put_to_sleep(process, seconds)
                self.pause(one.name, seconds)

    def jump_clock(self, name: str, seconds: float) -> None:
        """The wall clock."""
        self._network.host(name).wall_ns += int(seconds * 1e9)

    def cut(self, one: str, other: str, seconds: float) -> None:
        """Nothing arrives for so long."""
        self._network.link(self._network.host(one), self._network.host(other)).cut(seconds)

    def deafen(self, one: str, other: str, seconds: float) -> None:
        """Nothing that `other` says arrives at `one` for so long."""
        self._network.link(self._network.host(one), self._network.host(other)).deafen(one, seconds)

    def tear(self, one: str, other: str) -> None:
        """Connections break."""
        self._network.link(self._network.host(one), self._network.host(other)).tear()

    def slow(self, one: str, other: str, seconds: float) -> None:
        """Everything takes a hundred times as long."""
        link = self._network.link(self._network.host(one), self._network.host(other))
        link.slow_until = self._loop.now + seconds

    def disk_full(self, seconds: float) -> None:
        """Nothing can be written."""
        for disk in self._hit():
            disk.full_until = self._loop.now + seconds

    def disk_low(self, seconds: float) -> None:
        """There is room for little more than what is no message."""
        for disk in self._hit():
            disk.low_until = self._loop.now + seconds

    def disk_fails(self, seconds: float) -> None:
        """Most commits fail."""
        for disk in self._hit():
            disk.fails_until = self._loop.now + seconds

    def disk_slow(self, seconds: float) -> None:
        """Commits take a hundred times as long."""
        for disk in self._hit():
            disk.slow_until = self._loop.now + seconds

    def _hit(self) -> list[Disk]:
        """The disks that a fault is of: either, or both, where configuration is apart."""
        if len(self._disks) == 1:
            return self._disks
        return self._chance.choice([self._disks, self._disks[:1], self._disks[1:]])

    def ambush(self, method: str, moment: str, hold: float, spring: Callable[[], None]) -> None:
        """At the next moment of that kind; see `Ambushes`."""
        self._network.ambushes.lay(method, moment, hold, spring)

    def move(self, partition: int, queue_process: str) -> asyncio.Task[None]:
        """As `hopline partitions move`, in the background; in vain when the queue process does not live."""
        task = self._loop.create_task(self._move(partition, queue_process), name=f"move {partition}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _move(self, partition: int, queue_process: str) -> None:
        async def ask(client: PlacementClient) -> None:
            await client.move([partition], queue_process)

        await self._placement(ask)

    def policy(self, virtual_host: str, name: str, pattern: str, says: str, whose: str = "") -> asyncio.Task[None]:
        """As `hopline policies set`, or clear where it says nothing, in the background; in vain without a router."""
        setting = self._policy(virtual_host, name, pattern, says, operator=whose == "operator")
        task = self._loop.create_task(setting, name=f"policy {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _policy(self, virtual_host: str, name: str, pattern: str, says: str, *, operator: bool) -> None:
        if says == "{}":
            change = ChangeRequest(virtual_host=virtual_host, clear_policy=PolicyKey(name=name, operator=operator))
        else:
            said = says.encode()
            policy = Policy(name=name, pattern=pattern, apply_to="queues", definition=said, operator=operator)
            change = ChangeRequest(virtual_host=virtual_host, set_policy=policy)
        channel = connect(f"router-1:{RPC_PORT}")
        stub: RouterAsyncStub = RouterStub(channel)
        try:
            await result(stub.Change(change, timeout=_LONG))
        except BrokerError:
            pass  # no router writes, or there is no such policy
        finally:
            await channel.close()

    # -------------------------------------------------------------- whether all is well

    async def _serving(self) -> None:
        """Starts what is dead until all serve at once and every partition has an owner."""
        while not (self._all_run() and await self._all_owned()):
            for one in self._supervised.values():
                one.start()
            await asyncio.sleep(_LOOK)

    def _all_run(self) -> bool:
        return all(one.running is not None for one in self._supervised.values() if not one.for_good)

    async def _all_owned(self) -> bool:
        store = StoreClient(STORE)
        try:
            table = await store.leases(ROLE)
        except BrokerError:
            return False
        finally:
            await store.close()
        return len({lease.name for lease in table.leases if lease.member}) == self.shape.partitions

    async def _placement(self, ask: Any) -> None:
        try:
            async with PlacementClient(STORE, f"router-1:{RPC_PORT}") as client:
                await ask(client)
        except BrokerError:
            pass  # the store is away, or the queue process is
