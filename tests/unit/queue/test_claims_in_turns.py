"""How much of what is claimed is done in one turn of the event loop, and what else it holds up."""

from __future__ import annotations

import asyncio

import pytest

from services.queue.host import Host
from services.queue.links import link as link_module
from services.queue.links.in_turns import InTurns
from services.queue.machine.entry import Former
from services.queue.machine.seeking import Seeking
from services.queue.partitions import partitions
from services.queue.partitions.partition import Partition
from services.queue.timers import Timers
from tests.support.many_claims import FEW, MANY, holder, in_steps, stream_of, waiting
from tests.support.queue_house import House


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return in_steps(monkeypatch)


@pytest.fixture
def turns(steps: list[int], monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What was claimed or looked at in each turn."""
    done, some = list[list[int]](), InTurns._some

    def one_turn(self: InTurns) -> None:
        before = len(steps)
        some(self)
        done.append(steps[before:])

    monkeypatch.setattr(InTurns, "_some", one_turn)
    return done


@pytest.fixture
def host(house: House) -> Host:
    return house.queues["queue-1"]._host


async def test_a_turn_is_not_much(house: House, host: Host, turns: list[list[int]]) -> None:
    """What is claimed last is not looked for in the same turn."""
    queue_id, link, uids = await waiting(house)
    await link.send(attaches=[holder(queue_id, uids[:-1])])
    await link.until(lambda: turns and not host.claims)
    assert max(map(sum, turns)) <= FEW
    assert sum(map(sum, turns)) >= 2 * (MANY - 1)


async def test_little_behind_much(house: House, host: Host, turns: list[list[int]]) -> None:
    """What others hold a little of is claimed as one, not in a turn for each."""
    queue_id, link, uids = await waiting(house)
    few = [await house.declare(f"few-{number}") for number in range(5)]
    attaches = [holder(queue_id, uids[:-1]), *(holder(each, [uids[-1] + 1 + at]) for at, each in enumerate(few))]
    for number, attach in enumerate(attaches, 1):
        attach.consumer = number
    await link.send(attaches=attaches)
    await link.until(lambda: turns and not host.claims)
    assert sum(1 in each for each in turns) < len(few) - 1


class Claimed:
    """Some gateway claims of a queue, until `over`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        look, self._is_over = Seeking.look, False
        monkeypatch.setattr(Seeking, "look", lambda its, *said: not self._is_over or look(its, *said))

    async def by(self, house: House, host: Host) -> None:
        queue_id, link, uids = await waiting(house)
        await link.send(attaches=[holder(queue_id, uids[:-1])])
        await link.until(lambda: host.claims)

    def over(self) -> None:
        self._is_over = True


async def test_a_stream_that_ends_meanwhile(
    house: House, host: Host, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its clients had of other queues is given to others."""
    monkeypatch.setattr(link_module, "_RETURN_SECONDS", 0.05)
    queue_id, claimed = await house.declare("other"), Claimed(monkeypatch)
    gateway, other = await house.link(origin=1001, tells=True), await house.link(origin=1002)
    await gateway.attach(queue_id)
    await gateway.publish(queue_id, [b"1"])
    await gateway.until(lambda: gateway.uids)
    await claimed.by(house, host)
    await gateway.close()
    await other.attach(queue_id)
    await other.until(lambda: other.bodies)
    assert host.claims
    claimed.over()
    await other.until(lambda: not host.claims)


async def test_a_former_stream_of_one_that_is_always_late(
    house: House, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends, though something that its gateway said later waits at any time."""
    monkeypatch.setattr(link_module, "_RETURN_SECONDS", 0.05)
    gateway = await house.link(origin=1001, tells=True)
    await gateway.until(lambda: any(each.origin == 1001 for each in host.links))
    former = stream_of(host, 1001)
    await gateway.close()
    await gateway.until(lambda: former.broken)
    again = await house.link(origin=1001, tells=True)
    await again.until(lambda: any(each.origin == 1001 for each in host.links))
    late = host.late.begin(stream_of(host, 1001))
    async with asyncio.timeout(10):
        while not former.over:
            await asyncio.sleep(0.01)
            before, late = late, host.late.begin(stream_of(host, 1001))
            host.late.over(before)
    host.late.over(late)


def with_former(host: Host, origin: int) -> tuple[Partition, Timers]:
    """The time for this gateway to claim what it had of a partition is over."""
    partition = host.registry.partitions[0]
    partition.formers[origin] = Former(origin)
    partition.claimable_until, partition.claimable_most = 1, host.now() + 50_000
    return partition, Timers(host, bool)


async def test_a_former_of_another_gateway(
    house: House, host: Host, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not kept because somebody else claims."""
    claimed = Claimed(monkeypatch)
    await claimed.by(house, host)
    partition, timers = with_former(host, 77)
    timers._check_claims(partition, host.now())
    assert (partition.formers, partition.claimable_until) == ({}, 0)
    claimed.over()


async def test_a_former_of_one_that_claims(
    house: House, host: Host, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept as long as its gateway claims, but not for ever."""
    claimed = Claimed(monkeypatch)
    await claimed.by(house, host)
    partition, timers = with_former(host, 1000)
    timers._check_claims(partition, host.now())
    assert set(partition.formers) == {1000}
    assert host.now() < partition.claimable_until <= partition.claimable_most
    timers._check_claims(partition, partition.claimable_most)
    assert not partition.formers
    claimed.over()


async def test_a_former_of_one_that_is_late(house: House, host: Host) -> None:
    """It is kept: what its gateway claims waits, for selectors perhaps."""
    gateway = await house.link(origin=1001)
    await gateway.until(lambda: any(each.origin == 1001 for each in host.links))
    late = host.late.begin(stream_of(host, 1001))
    partition, timers = with_former(host, 1001)
    timers._check_claims(partition, host.now())
    assert set(partition.formers) == {1001}
    host.late.over(late)
    timers._check_claims(partition, partition.claimable_until)
    assert not partition.formers


async def test_a_partition_is_read_back_while_one_is_late(
    house: House, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not served before that gateway is heard, which may claim what would be given to others."""
    monkeypatch.setattr(partitions, "_SHORTLY", 0)
    gateway = await house.link(origin=1001, tells=True)
    await gateway.until(lambda: any(each.origin == 1001 for each in host.links))
    late = host.late.begin(stream_of(host, 1001))
    its = house.queues["queue-1"]._partitions
    hearing = asyncio.ensure_future(its._heard(its._new(3, 2)))
    await asyncio.sleep(0.3)
    assert not hearing.done()
    host.late.over(late)
    async with asyncio.timeout(10):
        await hearing
