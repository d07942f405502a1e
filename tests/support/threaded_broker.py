"""A whole broker with its management in a thread of its own, for what asks it and blocks meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from services.mgmt.service import Service
from tests.support.broker_house import BrokerHouse

# A test may keep the interpreter to itself for as long as it likes.
_PATIENT = {"lease_ttl_ms": 60_000, "place_ttl_ms": 60_000}


class ThreadedBroker:
    """Runs from `start` to `stop`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="broker", daemon=True)

    def call(self, what: Coroutine[Any, Any, Any]) -> Any:
        """What comes of it, there."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def start(self) -> None:
        """Returns when clients, and mgmt's callers, can connect."""
        self._thread.start()
        self.call(self._start())

    async def _start(self) -> None:
        at = {"http_host": "127.0.0.1", "http_port": 0}
        self.house = BrokerHouse(self._folder, gateways=1, queues=1, partitions=4, **at, **_PATIENT)
        await self.house.start()
        self.mgmt = Service(self.house.settings_at(1))
        await self.mgmt.start()

    def stop(self) -> None:
        self.call(self.mgmt.stop())
        self.call(self.house.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def threaded_broker(folder: Path) -> Iterator[ThreadedBroker]:
    """One that is started, and stopped."""
    broker = ThreadedBroker(folder)
    broker.start()
    yield broker
    broker.stop()
