"""What mgmt follows as long as it runs takes as much memory after many changes as after some."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest

from services.common.clients.partition_table import PartitionTable
from services.common.config import Settings
from services.mgmt.ledger.instances import Instances
from services.mgmt.roll import Roll
from services.mgmt.stack_health import StackHealth
from services.mgmt.tree.mirror import Mirror
from services.rpc.ledger_pb2 import LedgerBatch
from services.rpc.store_pb2 import Lease, LeaseTable, Member, Record, Records

SOME, MANY = 200, 600
"""Rounds until all is there that is needed once, and those after them."""

MOST: Final = 20 << 10
"""Bytes by which dictionaries may differ; a name that stayed of each round would take twice as much."""

A_ROUND: Final = 600.0
"""Seconds by each part's own clock: longer than anything is remembered, but for instances of the ledger."""


class Follower:
    """One part of mgmt, and what comes to it: names that never come again."""

    def __init__(self, settings: Settings) -> None:
        self.now = 0.0
        self.roll = Roll(lambda: self.now)
        self.table = PartitionTable()
        self.health = StackHealth(settings, self.table, self.roll, self._serves, lambda: self.now)
        self.mirror = Mirror()
        self.mirror.grouped("queue", "virtual_host")
        self.instances = Instances()

    async def _serves(self, _address: str, _seconds: float, _what: str) -> bool:
        return True

    async def members(self, number: int) -> None:
        """Processes come and go, and partitions with them."""
        name = f"queue-1-{number:012}"
        leases = [Lease(name=f"partition/{each}", epoch=number + 1, member=name, address=name) for each in range(8)]
        self.table.apply(LeaseTable(leases=leases, members=[Member(member=name, role="queue", address=name)]))
        self.roll.update("queue", self.table.members)
        self.roll.update("gateway", {f"gateway-{number}": ""})

    async def health_asked(self, _number: int) -> None:
        """By every probe."""
        assert (await self.health.report()).services

    async def records(self, number: int) -> None:
        """Queues are declared and deleted."""
        for deleted in (False, True):
            value = json.dumps({"virtual_host": "/", "id": number}).encode()
            record = Record(kind="queue", key=f"q{number}", value=b"" if deleted else value, deleted=deleted)
            await self.mirror.follow(_one(Records(records=[record], last=True, version=number)))

    async def told(self, number: int) -> None:
        """Processes tell their rows, and end."""
        batch = LedgerBatch(service="queue", instance=f"queue-{number}", first_row=1, time_us=1 + number, last=True)
        self.instances.heard(batch, self.now, self.now)
        self.instances.silent(self.now, self.now)


async def _one(records: Records) -> AsyncIterator[Records]:
    yield records


PARTS: Final[dict[str, Callable[[Follower, int], Awaitable[Any]]]] = {
    "members": Follower.members,
    "health": Follower.health_asked,
    "records": Follower.records,
    "instances": Follower.told,
}


def _kept() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("part", PARTS)
async def test_it_does_not_grow(settings: Settings, part: str) -> None:
    """Nothing is kept of what is over: mgmt grew by a megabyte a minute, and nobody had asked it anything."""
    follower, before = Follower(settings), 0
    tracemalloc.start()
    try:
        for number in range(SOME + MANY):
            before = before if number != SOME else _kept()
            follower.now += A_ROUND
            await PARTS[part](follower, number)
        grown = _kept() - before
    finally:
        tracemalloc.stop()
    assert grown < MOST
