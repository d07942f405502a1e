"""Which host is where: hosts by name and by address, listeners on them, and links between them."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Protocol

from tests.simulation.world.ambush import Ambushes
from tests.simulation.world.loop import Loop
from tests.simulation.world.network import Link
from tests.simulation.world.processes import PROCESS, Host, Process
from tests.simulation.world.shape import Shape

_NOWHERE = 0.2  # share of the addresses of dead processes that lead nowhere
_FIND_OUT = 2.5  # seconds until who is told nothing finds out, at most; times to live here are half of what is usual
_AGAIN = 1.0  # seconds until a connection that hears nothing is asked for once more


class Listener(Protocol):
    """Accepts connections on a port."""

    process: Process


class Network:
    """All hosts of a world."""

    def __init__(self, loop: Loop, random: Random, shape: Shape) -> None:
        self.loop = loop
        self.random = random
        self.shape = shape
        self.ambushes = Ambushes(loop)
        self.hosts: dict[str, Host] = {}
        self._by_address: dict[str, Host] = {}
        self._links: dict[tuple[int, int], Link] = {}
        self._listeners: dict[tuple[str, int], Any] = {}
        self._free: list[str] = []  # addresses of hosts that are gone
        self._gone: set[str] = set()

    def host(self, name: str) -> Host:
        """The host of a name, made when it is named for the first time."""
        found = self.hosts.get(name)
        if found is None:
            found = self.hosts[name] = Host(name, len(self.hosts) + 1)
            found.offset = 1000 + 1000 * self.random.random()
            found.rate = 1 + (self.random.random() - 0.5) * 2e-5
            self._by_address[found.address] = found
        return found

    def unheard(self, process: Process) -> float:
        """Seconds after the death of a process in which a peer hears of it: its machine may die with it."""
        if not self.shape.silent or Random(f"{process.name} {self.loop.now}").random() >= self.shape.silent:
            return 0.0
        return _FIND_OUT * self.random.random()

    def find(self, name: str) -> Host | None:
        """By name or by address: an address belongs to the host that has it now."""
        return self.hosts.get(name) or self._by_address.get(name)

    def move_in(self, host: Host) -> None:
        """A process starts there: where addresses are used again, with any one that is free at the moment."""
        if host.name in self._gone:
            self._gone.discard(host.name)
            address = self._free.pop(int(self.random.random() * len(self._free)))
            self._by_address[address] = host
            host.address = address

    def move_out(self, host: Host) -> None:
        """Its process is gone: its address refuses, or leads nowhere, until another host has it."""
        if self.shape.reuse_addresses:
            self._free.append(host.address)
            self._gone.add(host.name)
            if self.random.random() < _NOWHERE:
                del self._by_address[host.address]

    def link(self, one: Host, other: Host) -> Link:
        """Between two hosts."""
        key = (min(one.number, other.number), max(one.number, other.number))
        found = self._links.get(key)
        if found is None:
            found = self._links[key] = Link(self.loop, self.random, self.shape)
        return found

    def heal(self) -> None:
        """Ends all faults."""
        self.ambushes.lift()
        for link in list(self._links.values()):
            link.heal()

    def listen(self, port: int, listener: Listener) -> None:
        """From now on connections to `port` of the process's host are the listener's. Raises OSError when taken."""
        process = listener.process
        key = (process.name, port)
        if key in self._listeners:
            raise OSError(98, f"address already in use: port {port} of {process.name}")
        self._listeners[key] = listener
        process.on_death[lambda: self.close(port, listener)] = None

    def close(self, port: int, listener: Listener) -> None:
        """The listener listens there no more."""
        key = (listener.process.name, port)
        if self._listeners.get(key) is listener:
            del self._listeners[key]

    async def reach(self, name: str, port: int) -> tuple[Link, Any]:
        """The link to a listener, and it. Raises OSError when there is none; waits for ever when the link is cut."""
        me, target = PROCESS.get(), self.find(name)
        if target is None:
            raise OSError(113, f"no route to host {name}")
        link = self.link(me.host, target)
        answer: asyncio.Future[Any] = self.loop.create_future()
        self.loop.after(link.delay(), self.loop.kernel, self._ask, link, target, port, answer)
        return link, await answer

    def _ask(self, link: Link, target: Host, port: int, answer: asyncio.Future[Any]) -> None:
        loop = self.loop
        if link.is_cut:
            if not answer.done():
                loop.after(_AGAIN * (0.5 + self.random.random()), loop.kernel, self._ask, link, target, port, answer)
            return
        listener = self._listeners.get((target.name, port))
        loop.after(link.delay(), loop.kernel, _tell, answer, listener, target.name, port)


def _tell(answer: asyncio.Future[Any], listener: Any, name: str, port: int) -> None:
    if answer.done():
        return
    if listener is None or listener.process.dead:
        answer.set_exception(ConnectionRefusedError(111, f"connection refused: port {port} of {name}"))
    else:
        answer.set_result(listener)
