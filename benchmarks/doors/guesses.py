"""Wrong passwords at a steady rate, each on a connection of its own."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

from benchmarks.doors.peer import Login, address_number, refused
from services.common.access.records import Permission
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.mgmt.access.grants import Grants
from services.mgmt.users import Users

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.wire import Address

PER_SECOND = 200
_MANY = 50

# What is tried, as (mechanism, user whose name comes from a number, addresses).
KINDS = {
    f"{mechanism}, {whose}, from {addresses} address{'es' if addresses > 1 else ''}": (mechanism, whose, addresses)
    for addresses in (1, _MANY)
    for mechanism in ("PLAIN", "AMQPLAIN")
    for whose in ("unknown users", "the same users")
}


async def add_users(data: Path, names: Sequence[str], password: str) -> None:
    """Users with that password, who may do everything."""
    store = StoreClient(Settings(data=data).address_of("store"))
    users, grants = Users(store), Grants(store)
    for name in names:
        await users.put(name, password, (), loopback_only=False)
        await grants.put_permission(Permission(user=name, configure=".*", write=".*", read=".*"))
    await store.close()


class Guesses:
    """Of one of KINDS; of another kind there are none."""

    def __init__(self, address: Address, kind: str, users: Sequence[str]) -> None:
        self._address = address
        self._kind = KINDS.get(kind)
        self._users = users
        self._done = 0
        self._under_way: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._began = time.monotonic()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self._seconds = time.monotonic() - self._began
        self._task.cancel()
        await asyncio.gather(self._task, *self._under_way, return_exceptions=True)

    def rate(self) -> float:
        """That were refused, per second."""
        return self._done / self._seconds

    async def _run(self) -> None:
        for number in itertools.count():
            if self._kind is None:
                return
            await asyncio.sleep(self._began + number / PER_SECOND - time.monotonic())
            task = asyncio.create_task(self._try(number))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _try(self, number: int) -> None:
        assert self._kind
        mechanism, whose, addresses = self._kind
        user = f"unknown-{number}" if whose == "unknown users" else self._users[number % len(self._users)]
        guess = Login(user, "wrong", mechanism)
        await refused(self._address, address_number(number % addresses), guess)
        self._done += 1
