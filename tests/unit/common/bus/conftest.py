from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.common.bus.event import Event
from services.common.bus.event_bus import EventBus
from services.common.bus.facts import VirtualHostCreated
from services.common.bus.follow import follow
from services.common.bus.subject import ALL
from tests.support.nats_server import NatsServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    """A NATS server that does not run yet."""
    server = NatsServer(tmp_path)
    yield server
    server.kill()


class Listener:
    """Collects the events of all subjects."""

    def __init__(self, address: str, subject: str = ALL) -> None:
        self.events: list[Event] = []
        self.subjects: list[str] = []
        self._address = address
        self._subject = subject

    async def start(self) -> None:
        """Returns when it hears what is told."""
        self._task = asyncio.create_task(self._listen())
        probe = EventBus(self._address, "test", "probe")
        probe.start()
        while not self.subjects:
            probe.publish(VirtualHostCreated(virtual_host="probe"))
            await asyncio.sleep(0.05)
        await probe.stop()
        await asyncio.sleep(0.1)
        self.events.clear()
        self.subjects.clear()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, count: int) -> list[Event]:
        """The first `count` events."""
        async with asyncio.timeout(60):
            while len(self.events) < count:
                await asyncio.sleep(0.01)
        return self.events

    async def _listen(self) -> None:
        async for told in follow(self._address, self._subject):
            self.subjects.append(told.subject)
            self.events.append(Event.from_json(told.payload))


@pytest.fixture
async def listener(server: NatsServer) -> AsyncIterator[Listener]:
    """Hears everything on a server that runs."""
    await server.start()
    listener = Listener(server.address)
    await listener.start()
    yield listener
    await listener.stop()


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[EventBus]:
    """A process's bus, started; it keeps no more than 50 events."""
    bus = EventBus(server.address, "router", "router-1", origin=7, capacity=50)
    bus.start()
    yield bus
    await bus.stop()
