"""One history from beginning to end: load and faults, then everything is healed, has to move, and is emptied."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from services.common.clients.virtual_hosts import VirtualHostsClient
from tests.simulation import steps
from tests.simulation.amqp_1_0 import steps as link_steps
from tests.simulation.amqp_1_0.client import LinkClient
from tests.simulation.choices import LEAST_TTL, MOST_TTL
from tests.simulation.client import Client
from tests.simulation.emptying import Emptying
from tests.simulation.history import Fault, History
from tests.simulation.plan import Plan, Step
from tests.simulation.room import make_room, rooms

PATIENCE = 120.0  # seconds after healing in which everything has to be answered
# A gateway carries out what it had read of connections that are closed, once it has heard of a router again. An answer
# that is held until after healing, for four seconds at most, is heard; and what a gateway that is gone held has come
# back then, which is not among what a queue says that it has before: its next owner waits three seconds for a claim.
_CARRIED_OUT = 8.0
_ROUTER = "router-1:7000"
_KINDS: dict[str, tuple[type[Client], dict[str, Any]]] = {
    "0-9-1": (Client, steps.STEPS),
    "1.0": (LinkClient, link_steps.STEPS),
}
"""Of clients, by their protocol, and what their steps do."""


class Cluster(Protocol):
    """What a history needs of the world's cluster, besides its faults."""

    amqp_addresses: list[tuple[str, int]]

    async def heal(self) -> None: ...

    def ledger(self) -> Any: ...

    def memory_accounts(self) -> dict[str, int]: ...


class Place(Protocol):
    """The world, or what stands for it."""

    cluster: Any

    def host(self, name: str) -> AbstractContextManager[Any]: ...


async def play(place: Place, plan: Plan, history: History) -> None:
    """Carries a plan out, and writes down what is seen; the cluster has been started."""
    scenario = _Scenario(place, plan, history)
    await scenario.prepare()
    await scenario.load()
    await scenario.finish()
    await scenario.empty()


_WAITS = frozenset({"x-message-ttl", "x-expires", LEAST_TTL, MOST_TTL})


class _Scenario:
    def __init__(self, place: Place, plan: Plan, history: History) -> None:
        self.place, self.plan, self.history = place, plan, history
        self.cluster = place.cluster
        self.clients: dict[str, Client] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        addresses = self.cluster.amqp_addresses
        self.gateways = [f"gateway-{number}" for number in range(1, len(addresses) + 1)]
        self.rooms: list[tuple[Client, asyncio.Task[None]]] = []
        self.emptying = Emptying(history, plan, addresses, self.gateways)
        for each in plan.clients:
            kind, self.tables[each["name"]] = _KINDS[each.get("protocol", "0-9-1")]
            more = {"frame": each["frame"]} if "frame" in each else {}
            client = kind(history, each["name"], each["host"], addresses, each["gateway"], self.gateways, **more)
            self.clients[client.name] = client

    async def prepare(self) -> None:
        """The topology that there is from the start."""
        self.history.phase = "declaring"
        for host in dict.fromkeys(client["host"] for client in self.plan.clients):
            if host != "/":
                await _create_virtual_host(host)
        for host, changes in _by(self.plan.topology, "host").items():
            first = next(client for client in self.clients.values() if client.host == host)
            with self.place.host(first.name):
                await asyncio.create_task(first.run(changes, self.tables[first.name]))

    async def load(self) -> None:
        of_client = _by(self.plan.steps, "client")
        for client in self.clients.values():
            with self.place.host(client.name):
                running = client.run(of_client.get(client.name, []), self.tables[client.name])
                self.tasks[client.name] = asyncio.create_task(running, name=client.name)
        self.history.phase = "breaking"
        await _Faults(self.cluster, self.history).begin(self.plan.faults)
        self.history.phase = "healing"
        await self.cluster.heal()
        self.history.healed = self.history.tick()
        for fault in self.history.faults:
            fault.ended = fault.ended or self.history.healed
        self._make_room()
        await self._within("carrying out its steps")

    async def finish(self) -> None:
        """Everything that waits is answered."""
        for client in self.clients.values():
            with self.place.host(client.name):
                self.tasks[client.name] = asyncio.create_task(client.finish(self.emptying.drain), name=client.name)
        await self._within("finishing")
        await self._leave_rooms()

    def _make_room(self) -> None:
        """For those that are held back."""
        for host, queues in rooms(self.plan).items():
            name = f"room-{host}"
            with self.place.host(name):
                client = Client(self.history, name, host, self.cluster.amqp_addresses, 0, self.gateways)
                self.rooms.append((client, asyncio.create_task(make_room(client, queues), name=name)))

    async def _leave_rooms(self) -> None:
        for client, task in self.rooms:
            task.cancel()
            if client.wire and not client.wire.dead:
                await client.wire.close()

    async def _within(self, what: str) -> None:
        self.history.phase = what
        _, late = await asyncio.wait(self.tasks.values(), timeout=PATIENCE)
        for task in self.tasks.values():
            if task in late:
                client = self.clients[task.get_name()]
                self.history.stuck.append(f"{client.name} was still {what} after {PATIENCE:.0f} s: {client.doing}")
                task.cancel()
                if client.wire:
                    client.wire.abort()
            elif not task.cancelled() and (fault := task.exception()):
                raise fault

    # -------------------------------------------------------------- what is left

    async def empty(self) -> None:
        """Everything that expires has done so; then every queue is emptied, until nothing comes any more."""
        self.history.draining, self.history.phase = True, "emptying"
        await asyncio.sleep(_CARRIED_OUT + self._longest_wait())
        await self.emptying.all()
        # Memory is given back when gateways have been told that they need not remember settlements.
        await asyncio.sleep(2)
        self.history.accounts = dict(self.cluster.memory_accounts())
        self.history.clock_at_end = self.history.clock()
        self.history.ledger = self.cluster.ledger()

    def _longest_wait(self) -> float:
        found = [step[what] for step in self.plan.steps for what in ("ttl", "delay") if step.get(what)]
        for step in self.plan.topology:
            found += [v for k, v in (step.get("arguments") or {}).items() if k in _WAITS]
        return max((each for each in found if each <= 10_000), default=0) / 1000


async def _create_virtual_host(name: str) -> None:
    router = VirtualHostsClient(_ROUTER)
    try:
        await router.create(name)
    finally:
        await router.close()


class _Faults:
    """Begins each at its moment, and takes down when."""

    def __init__(self, cluster: Any, history: History) -> None:
        self.cluster, self.history = cluster, history
        self.until = 0.0  # when all that was begun is over

    async def begin(self, faults: list[Step]) -> None:
        start = asyncio.get_running_loop().time()
        for fault in sorted(_with_ends(faults), key=lambda each: each["at"]):
            left = start + fault["at"] - asyncio.get_running_loop().time()
            if left > 0:
                await asyncio.sleep(left)
            if fault["do"] == "ambush":
                self.cluster.ambush(*fault["args"], fault["hold"], partial(self._spring, fault["then"]))
            else:
                self._happen(fault)
        while (left := self.until - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(left)  # what is sprung meanwhile may take longer

    def _happen(self, fault: Step) -> None:
        names = tuple(str(name) for name in fault.get("args", ()))
        now, seconds = asyncio.get_running_loop().time(), fault.get("seconds", 0.0)
        self.history.faults.append(Fault(fault["do"], names, self.history.tick(), now, seconds))
        self.until = max(self.until, now + (seconds if fault["do"] != "jump_clock" else 0.0))
        timed = [seconds] if "seconds" in fault else []
        getattr(self.cluster, fault["do"])(*fault.get("args", ()), *timed)

    def _spring(self, faults: list[Step]) -> None:
        for fault in _with_ends([{"at": 0.0, **fault} for fault in faults]):
            loop = asyncio.get_running_loop()
            self.until = max(self.until, loop.time() + fault["at"])
            loop.call_later(fault["at"], self._happen, fault)


def _with_ends(faults: list[Step]) -> list[Step]:
    """What is dead for a time is started again after it."""
    found: list[Step] = []
    for fault in faults:
        found.append({key: value for key, value in fault.items() if key != "for"})
        if "for" in fault:
            found.append({"at": fault["at"] + fault["for"], "do": "start_again", "args": fault["args"]})
    return found


def _by(steps: list[Step], key: str) -> dict[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(step[key], []).append(step)
    return found
