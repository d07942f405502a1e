from __future__ import annotations

import asyncio

import pytest

from services.common.clients.partition_table import PartitionTable
from services.common.config import Settings
from services.mgmt.stack_health import Report, StackHealth, queue_state
from services.rpc.store_pb2 import Lease, LeaseTable, Member


def table_of(owners: dict[int, str], alive: set[str]) -> PartitionTable:
    """Partitions by the member that has them; a member's address is its name."""
    table = PartitionTable()
    leases = [Lease(name=f"partition/{number}", epoch=1, member=who, address=who) for number, who in owners.items()]
    members = [Member(member=who, role="queue", address=who) for who in alive]
    table.apply(LeaseTable(leases=leases, members=members))
    return table


class Stack:
    """Answers health checks, counts them, and is the clock."""

    def __init__(self, settings: Settings) -> None:
        self.down: set[str] = set()
        self.asked = 0
        self.now = 0.0
        self.routers: list[str] = []  # that the store knows
        self.table = table_of(dict.fromkeys(range(4), "q1"), {"q1"})
        self.health = StackHealth(settings, self.table, lambda: self.routers, self._check, lambda: self.now)

    async def _check(self, address: str, seconds: float) -> bool:
        self.asked += 1
        await asyncio.sleep(0)
        return address not in self.down


@pytest.fixture
def stack(settings: Settings) -> Stack:
    return Stack(settings)


async def test_all_well(stack: Stack) -> None:
    """When everyone serves and every partition has an owner, the stack is ready."""
    report = await stack.health.report()
    assert report == Report(dict.fromkeys(["store", "router", "gateway", "mgmt", "queue"], "ok"))
    assert report.ok


@pytest.mark.parametrize("name", ["store", "router", "gateway", "mgmt"])
async def test_one_down(stack: Stack, settings: Settings, name: str) -> None:
    """The report names the part that does not serve, and only that."""
    stack.down.add(settings.address_of(name))
    report = await stack.health.report()
    assert not report.ok
    assert {part for part, state in report.services.items() if state != "ok"} == {name}


async def test_one_of_several_routers_down(settings: Settings) -> None:
    """One router is enough, whichever; the report names those that are away, whether started here or elsewhere."""
    stack = Stack(settings.model_copy(update={"routers": 2}))
    stack.routers = ["r3", "r4"]
    first, second = (settings.address_of(name) for name in ("router", "router-2"))
    stack.down = {first, "r3"}
    report = await stack.health.report()
    assert report.ok
    assert report.away == {"router": sorted([first, "r3"])}
    stack.down |= {second, "r4"}
    stack.now = 1.0
    report = await stack.health.report()
    assert report.services["router"] == "not serving"
    assert report.away == {}


async def test_queue_process_down(stack: Stack) -> None:
    """An owner that does not answer is missed before its lease runs out."""
    stack.down.add("q1")
    assert (await stack.health.report()).services["queue"] == "not serving: q1"


async def test_full_disk(stack: Stack) -> None:
    """A store that answers and cannot keep anything is not well, and the report says why."""
    stack.table.unwritable = "low on disk: 0 KiB free, 64 MiB must be"
    report = await stack.health.report()
    assert not report.ok
    assert report.services["store"] == "low on disk: 0 KiB free, 64 MiB must be"


async def test_good_report_is_kept(stack: Stack, settings: Settings) -> None:
    """Half a second long a good report is given again, then services are asked again."""
    await stack.health.report()
    asked = stack.asked
    stack.now = 0.49
    stack.down.add(settings.address_of("router"))
    assert (await stack.health.report()).ok
    assert stack.asked == asked
    stack.now = 0.5
    assert not (await stack.health.report()).ok


async def test_bad_report_is_soon_forgotten(stack: Stack, settings: Settings) -> None:
    """A stack that comes up is noticed within a twentieth of a second."""
    stack.down.add(settings.address_of("router"))
    await stack.health.report()
    stack.down.clear()
    stack.now = 0.05
    assert (await stack.health.report()).ok


async def test_callers_share_one_answer(stack: Stack) -> None:
    """A crowd of callers costs one round of checks."""
    await asyncio.gather(*(stack.health.report() for _ in range(10)))
    assert stack.asked == 5


@pytest.mark.parametrize(
    ("owners", "alive", "serving", "state"),
    [
        ({0: "q1", 1: "q2"}, {"q1", "q2"}, {"q1", "q2"}, "ok"),
        ({}, set(), set(), "0 of 2 partitions have an owner"),
        ({0: "q1"}, {"q1"}, {"q1"}, "1 of 2 partitions have an owner"),
        ({0: "q1", 1: "q2"}, {"q1"}, {"q1"}, "1 of 2 partitions have an owner"),
        ({0: "q1", 1: "q2"}, {"q1", "q2"}, {"q1"}, "not serving: q2"),
    ],
)
def test_queue_state(owners: dict[int, str], alive: set[str], serving: set[str], state: str) -> None:
    """Every partition needs an owner that is a live member and answers."""
    assert queue_state(table_of(owners, alive), 2, serving) == state
