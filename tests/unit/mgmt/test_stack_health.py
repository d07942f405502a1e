from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.common.clients.partition_table import PartitionTable
from services.common.clients.stores import Stores
from services.common.config import Settings
from services.common.restored import Restored
from services.mgmt.restored import RestoredNote
from services.mgmt.roll import Roll
from services.mgmt.stack_health import Report, StackHealth, queue_state, store_state
from services.rpc.store_pb2 import Lease, LeaseTable, Member, Record, Records


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
        self.beginning: set[str] = set()  # queue processes that read partitions back
        self.still: set[str] = set()  # those that do not answer within the deadline
        self.deadlines = 0
        self.asked = 0
        self.now = 0.0
        self.roll = Roll(lambda: self.now)
        self.table = table_of(dict.fromkeys(range(4), "q1"), {"q1"})
        self.stores = Stores()
        self.health = StackHealth(settings, self.table, self.roll, self._check, lambda: self.now, stores=self.stores)
        self.roll.update("queue", self.table.members)

    async def _check(self, address: str, seconds: float, what: str) -> bool:
        self.asked += 1
        if address in self.still:
            await asyncio.sleep(seconds)
            self.deadlines += 1
            return False
        await asyncio.sleep(0)
        return address not in (self.beginning if what else self.down)


@pytest.fixture
def stack(settings: Settings) -> Stack:
    return Stack(settings)


async def test_all_well(stack: Stack) -> None:
    """When everyone serves and every partition has an owner, the stack is ready."""
    report = await stack.health.report()
    assert report == Report(
        dict.fromkeys(["store", "router", "gateway", "mgmt", "queue"], "ok"), members={"queue": {"q1": "ok"}}
    )
    assert report.ok


@pytest.mark.parametrize("name", ["store", "router", "gateway", "mgmt"])
async def test_one_down(stack: Stack, settings: Settings, name: str) -> None:
    """The report names the part that does not serve, and only that."""
    stack.down.add(settings.address_of(name))
    report = await stack.health.report()
    assert not report.ok
    assert {part for part, state in report.services.items() if state != "ok"} == {name}


async def test_one_of_several_gateways_down(settings: Settings) -> None:
    """One gateway is enough, as clients reach any of them at the same port; the report names the other."""
    stack = Stack(settings)
    settings.run_folder.mkdir(parents=True)
    (settings.run_folder / "gateway-process-2.pid").touch()
    first, second = (settings.address_of(name) for name in ("gateway", "gateway-process-2"))
    stack.down = {first}
    report = await stack.health.report()
    assert (report.ok, report.away) == (True, {"gateway": [first]})
    stack.down |= {second}
    stack.now = 1.0
    report = await stack.health.report()
    assert (report.services["gateway"], report.away) == ("not serving", {})


async def test_one_of_several_routers_down(settings: Settings) -> None:
    """One router is enough, whichever; the report names those that are away, whether started here or elsewhere."""
    stack = Stack(settings.model_copy(update={"routers": 2}))
    stack.roll.update("router", {"r3-x": "r3", "r4-x": "r4"})
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


async def test_several_store_processes(stack: Stack) -> None:
    """It shows which one writes and which stand by; one that does not answer is away, and the store is well."""
    members = [Member(member=name, role="store", address=name) for name in ("store-1-x", "store-2-y")]
    stack.stores.apply(LeaseTable(leases=[Lease(name="store", epoch=3, member="store-2-y")], members=members))
    stack.roll.update("store", stack.stores.members)
    stack.down.add("store-1-x")
    report = await stack.health.report()
    assert report.ok
    assert report.does == {"store-1-x": "stands by", "store-2-y": "writes"}
    assert report.members["store"] == {"store-1-x": "not serving", "store-2-y": "ok"}
    assert report.away == {"store": ["store-1-x"]}


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


@pytest.mark.parametrize(
    ("unwritable", "unchangeable", "state"),
    [
        ("", "", "ok"),
        ("low on disk", "", "low on disk"),
        ("", "db is away", "configuration: db is away"),
        ("low on disk", "db is away", "low on disk; configuration: db is away"),
    ],
)
def test_what_a_store_cannot_write(unwritable: str, unchangeable: str, state: str) -> None:
    """Configuration is named where it is apart: messages go on."""
    table = PartitionTable()
    table.apply(LeaseTable(unwritable=unwritable, unchangeable=unchangeable))
    assert store_state(table) == state


async def test_good_report_is_kept(stack: Stack, settings: Settings) -> None:
    """A tenth of a second long a good report is given again, then services are asked again."""
    await stack.health.report()
    asked = stack.asked
    stack.now = 0.09
    stack.down.add(settings.address_of("router"))
    assert (await stack.health.report()).ok
    assert stack.asked == asked
    stack.now = 0.1
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
    assert stack.asked == 6  # the queue process twice


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
    assert queue_state(table_of(owners, alive), 2, serving, set()) == state


async def test_an_owner_that_takes_over(stack: Stack) -> None:
    """It has the lease, and messages wait until it has read back what there was, and heard what clients hold."""
    stack.beginning = {"q1"}
    report = await stack.health.report()
    assert not report.ok
    assert report.services["queue"] == "partitions are changing hands: q1"
    assert report.members["queue"] == {"q1": "ok"}
    stack.beginning, stack.now = set(), 1.0
    assert (await stack.health.report()).ok


async def test_one_stands_still(settings: Settings) -> None:
    """Who does not answer delays one report, and none after that, until it answers again."""
    stack = Stack(settings)
    settings.run_folder.mkdir(parents=True)
    (settings.run_folder / "gateway-process-2.pid").touch()
    second = settings.address_of("gateway-process-2")
    stack.still = {second}
    for number in range(4):
        stack.now = float(number)
        assert (await stack.health.report()).away == {"gateway": [second]}
        assert stack.deadlines == 1
    stack.still, stack.now = set(), 10.0
    async with asyncio.timeout(20):
        while (await stack.health.report()).away:  # until what was asked last is answered
            await asyncio.sleep(0.02)
            stack.now += 1


async def test_owners_that_were_replaced(stack: Stack) -> None:
    """A process that answers at the address of one that was killed is not the owner of what that had."""
    members = [Member(member=who, role="queue", address="q1") for who in ("q1", "q1-again")]
    leases = [Lease(name=f"partition/{number}", epoch=1, member="q1", address="q1") for number in range(4)]
    stack.table.apply(LeaseTable(leases=leases, members=members))
    stack.roll.update("queue", stack.table.members)
    report = await stack.health.report()
    assert report.services["queue"] == "the owners of 4 partitions are gone, others have them in a moment"
    assert report.members["queue"] == {"q1": "gone", "q1-again": "ok"}
    for lease in leases:
        lease.member, lease.epoch = "q1-again", 2
    stack.table.apply(LeaseTable(leases=leases, members=members))
    stack.now = 1.0
    assert (await stack.health.report()).services["queue"] == "ok"


async def test_how_it_ended(stack: Stack, settings: Settings) -> None:
    """What does not serve is told with how it ended, if a supervisor waits to start it again."""
    settings.run_folder.mkdir(parents=True)
    (settings.run_folder / "store.pid").touch()
    for name in ("store", "mgmt"):
        (settings.run_folder / f"{name}.ended").write_text("killed by SIGKILL\n")
    stack.down.add(settings.address_of("store"))
    report = await stack.health.report()
    assert (report.services["store"], report.services["mgmt"]) == ("not serving: killed by SIGKILL", "ok")
    assert report.members["store"] == {"store": "not serving: killed by SIGKILL"}


async def test_how_a_member_ended(stack: Stack, settings: Settings) -> None:
    """One that was there says it too, by its address: a member's name is not its program's."""
    settings.run_folder.mkdir(parents=True)
    for name in ("queue-1", "nats"):
        (settings.run_folder / f"{name}.ended").write_text("killed by SIGKILL\n")
    address = settings.address_of("queue-1")
    stack.roll.update("queue", {"queue-1-ab": address})
    stack.down.add(address)
    assert (await stack.health.report()).members["queue"]["queue-1-ab"] == "not serving: killed by SIGKILL"
    stack.roll.update("queue", {})
    stack.now = 1.0
    assert (await stack.health.report()).members["queue"]["queue-1-ab"] == "gone for 1 s: killed by SIGKILL"
    (settings.run_folder / "queue-1.ended").rename(settings.run_folder / "queue-1.former")
    stack.roll.update("queue", {"queue-1-ab": address, "queue-1-cd": address})
    stack.down.clear()
    stack.now = 2.0
    its = (await stack.health.report()).members["queue"]
    assert (its["queue-1-ab"], its["queue-1-cd"]) == ("gone: killed by SIGKILL", "ok")


async def test_every_member(stack: Stack) -> None:
    """Each queue process, router and gateway has its state, also one that owns nothing, or does not answer."""
    stack.roll.update("queue", {"q1": "q1", "q2": "q2"})
    stack.roll.update("router", {"router-ab": "r1", "router-2-cd": "r2"})
    stack.roll.update("gateway", {"gateway-7": "", "gateway-9": ""})
    stack.down = {"q2", "r2"}
    report = await stack.health.report()
    assert report.ok
    assert report.members == {
        "router": {"router-ab": "ok", "router-2-cd": "not serving"},
        "queue": {"q1": "ok", "q2": "not serving"},
        "gateway": {"gateway-7": "ok", "gateway-9": "ok"},
    }


async def test_what_a_supervisor_runs(stack: Stack, settings: Settings) -> None:
    """A program of `hopline up` that does not answer is told of by its name though it never was a member."""
    settings.run_folder.mkdir(parents=True)
    for name in ("supervisor", "nats", "store", "router", "queue-1", "queue-2", "gateway"):
        (settings.run_folder / f"{name}.pid").touch()
    stack.roll.update("queue", {"q1": "q1", "queue-1-ab": settings.address_of("queue-1")})
    stack.down = {settings.address_of("queue-2"), settings.address_of("gateway")}
    members = (await stack.health.report()).members
    assert members == {
        "queue": {"q1": "ok", "queue-1-ab": "ok", "queue-2": "not serving"},
        "gateway": {"gateway": "not serving"},
    }


async def test_restored(settings: Settings) -> None:
    """A stack that was restored is well, and says what it does not know."""
    note = RestoredNote()
    restored = Restored(generation=2, backup_ms=1_700_000_000_000, restored_ms=1_700_000_600_000)
    record = Record(kind="store", key="restored", value=restored.model_dump_json().encode())

    async def messages() -> AsyncIterator[Records]:
        yield Records(snapshot=True, last=True)
        assert note.text == ""
        yield Records(snapshot=True, last=True, records=[record])

    await note.follow(messages())
    table = table_of(dict.fromkeys(range(4), "q1"), {"q1"})
    health = StackHealth(settings, table, Roll(), _serving, restored=lambda: note.text)
    report = await health.report()
    assert report.ok
    told = "restored at 2023-11-14 22:23:20 UTC from the backup of 2023-11-14 22:13:20 UTC, generation 2: messages"
    assert report.restored.startswith(told)


async def _serving(_address: str, _seconds: float, _what: str) -> bool:
    return True
