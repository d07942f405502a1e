"""Leases: one holder at a time, an epoch for each, time from a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest

from services.common.errors import CommandInvalid, Fenced
from services.rpc.store_pb2 import Fence, KeepAliveRequest
from tests.support.store_house import TTL_MS, House, enqueue

TTL = TTL_MS / 1000


async def test_only_what_is_free_is_acquired(house: House) -> None:
    """Two members share what they ask for, first come first served; the reply shows the leases of all."""
    assert await house.acquire("partition/1") == {"partition/1": 1}
    assert await house.acquire("partition/1", "partition/2", member="m2") == {"partition/2": 1}
    reply = await house.engine.leases.keep_alive(KeepAliveRequest(member="m1", role="queue", address="a"))
    assert {lease.name: lease.member for lease in reply.leases} == {"partition/1": "m1", "partition/2": "m2"}
    assert {member.member for member in reply.members} == {"m1", "m2"}
    assert reply.ttl_ms == TTL_MS
    assert reply.incarnation == house.engine.incarnation


async def test_concurrent_acquirers_get_one_holder(house: House) -> None:
    """Of many that ask at once one gets the lease, at the next epoch."""
    got = await asyncio.gather(*(house.acquire("router", member=f"m{number}") for number in range(10)))
    assert [leases for leases in got if leases] == [{"router": 1}]


async def test_the_epoch_counts_holders(house: House) -> None:
    """It grows with a change of holder and stays with the same one."""
    assert await house.acquire("partition/1") == {"partition/1": 1}
    assert await house.acquire("partition/1") == {"partition/1": 1}
    assert await house.acquire(release=["partition/1"]) == {}
    assert await house.acquire("partition/1", member="m2") == {"partition/1": 2}
    assert await house.acquire("partition/1") == {}


async def test_a_late_release_lets_go_of_nothing_newer(house: House) -> None:
    """Of a lease that was let go and taken anew, only its present epoch can be released, or whichever it has."""
    for epoch in (1, 2):
        assert await house.acquire("partition/1", "partition/2") == {"partition/1": epoch, "partition/2": epoch}
        released = await house.acquire(release=["partition/1", "partition/2"], release_epochs=[1, epoch])
        assert released == ({} if epoch == 1 else {"partition/1": 2})
    assert await house.acquire(release=["partition/1"]) == {}


async def test_renewals_write_nothing(house: House) -> None:
    """A keep-alive that changes no holder does not touch the disk."""
    await house.acquire("partition/1")
    before = len(house.commits)
    for _ in range(5):
        house.clock.now += TTL / 2
        assert await house.acquire("partition/1") == {"partition/1": 1}
    assert len(house.commits) == before


async def test_expiry_frees(house: House) -> None:
    """A member that does not renew within the time to live loses its leases to the next that asks."""
    await house.acquire("partition/1")
    house.clock.now += TTL * 0.9
    assert await house.acquire("partition/1", member="m2") == {}
    house.clock.now += TTL * 0.2
    assert await house.acquire("partition/1", member="m2") == {"partition/1": 2}
    assert await house.acquire("partition/1") == {}


async def test_a_late_holder_whose_lease_is_free_keeps_it(house: House) -> None:
    """Coming back after expiry to a lease that is still free is a renewal, at the same epoch."""
    await house.acquire("partition/1")
    house.clock.now += TTL * 3
    house.engine.leases.expire()
    assert await house.acquire() == {"partition/1": 1}


async def test_when_no_member_is_heard_none_is_late(house: House) -> None:
    """A store that was cut off, or stood still, lets all members come back for one time to live from the first on."""
    await house.acquire("partition/1")
    await house.acquire("partition/2", member="m2")
    house.clock.now += TTL * 3
    house.engine.leases.expire()
    assert await house.acquire("partition/2") == {"partition/1": 1}
    house.clock.now += TTL * 0.5
    assert await house.acquire("partition/2") == {"partition/1": 1}
    assert await house.acquire("partition/1", member="m2") == {"partition/2": 1}
    assert "lease.lost" not in [event for event, *_ in house.told]


async def test_a_store_process_that_is_heard_says_nothing_of_others(house: House) -> None:
    """The process that writes reaches itself, and one that stands by, while the way to all others is cut."""

    async def present() -> None:
        await house.acquire("store", member="store-1-a", role="store")
        await house.acquire(member="store-2-b", role="store")

    await present()
    await house.acquire("partition/1")
    await house.acquire("partition/2", member="m2")
    for _ in range(6):
        house.clock.now += TTL / 2
        await present()
        house.engine.leases.expire()
    assert await house.acquire("partition/1", "partition/2") == {"partition/1": 1}
    assert await house.acquire(member="m2") == {"partition/2": 1}
    assert "lease.lost" not in [event for event, *_ in house.told]


async def test_a_member_beside_store_processes_expires_alone(house: House) -> None:
    """As without them: there is no other that could be heard in its place."""
    await house.acquire("store", member="store-1-a", role="store")
    await house.acquire("partition/1")
    house.clock.now += TTL * 1.1
    await house.acquire("store", member="store-1-a", role="store")
    house.engine.leases.expire()
    assert await house.acquire("partition/1", member="m2") == {"partition/1": 2}


async def test_a_member_that_does_not_come_back_is_late_then(house: House) -> None:
    """After a silence of all, a member that stays silent loses its leases one time to live after the first is heard."""
    await house.acquire("partition/1")
    await house.acquire("partition/2", member="m2")
    house.clock.now += TTL * 3
    for got in ({"partition/1": 1}, {"partition/1": 1}, {"partition/1": 1, "partition/2": 2}):
        assert await house.acquire("partition/2") == got
        house.clock.now += TTL / 2


async def test_changes_are_told(house: House) -> None:
    """Taking a lease, giving it back, losing it by silence, and being late for a free one: each is an event."""
    await house.acquire("partition/1", "partition/2")
    await house.acquire(release=["partition/1"])
    await house.acquire("partition/1", member="m2")
    for _ in range(3):
        house.clock.now += TTL / 2
        await house.acquire(member="m2")
    await house.acquire()
    await house.acquire(member="m2", leaving=True)
    assert house.told == [
        ("lease.acquired", "partition/1", "m1", 1),
        ("lease.acquired", "partition/2", "m1", 1),
        ("lease.released", "partition/1", "m1", 1),
        ("lease.acquired", "partition/1", "m2", 2),
        ("lease.lost", "partition/2", "m1", 1),
        ("lease.acquired", "partition/2", "m1", 1),
        ("lease.released", "partition/1", "m2", 2),
    ]


async def test_what_is_known_is_not_told_again(house: House) -> None:
    """A caller that knows a version is answered when a lease, its load, or a member has changed since."""
    await house.acquire("partition/1")
    request = KeepAliveRequest(member="m1", role="queue", address="unix:m1")
    first = await house.engine.leases.keep_alive(request)
    request.known = first.version
    assert not (await house.engine.leases.keep_alive(request)).leases
    request.loads.add(lease="partition/1", rate=7.0)
    weighed = await house.engine.leases.keep_alive(request)
    assert [lease.load.rate for lease in weighed.leases] == [7.0]
    request = KeepAliveRequest(member="m1", role="queue", address="unix:m1", known=weighed.version)
    assert not (await house.engine.leases.keep_alive(request)).leases
    await house.acquire(member="m2")
    joined = await house.engine.leases.keep_alive(request)
    assert {member.member for member in joined.members} == {"m1", "m2"}


async def test_a_member_may_ask_for_less_time(house: House) -> None:
    """`ttl_ms` shortens the time to live and cannot lengthen it."""
    await house.acquire("partition/1", ttl_ms=100)
    await house.acquire("partition/2", member="m2", ttl_ms=100 * TTL_MS)
    house.clock.now += 0.05
    await house.acquire(member="m2")
    house.clock.now += 0.05
    assert await house.acquire("partition/1", "partition/2", member="m3") == {"partition/1": 2}
    house.clock.now += TTL / 2
    assert await house.acquire("partition/2", member="m3") == {"partition/1": 2}
    house.clock.now += TTL / 2
    assert await house.acquire("partition/2", member="m3") == {"partition/1": 2, "partition/2": 2}


async def test_leaving_frees_at_once(house: House) -> None:
    """A member that leaves holds nothing and is no member."""
    await house.acquire("partition/1", "partition/2")
    assert await house.acquire(leaving=True) == {}
    reply = await house.engine.leases.keep_alive(KeepAliveRequest(member="m2", role="queue", acquire=["partition/1"]))
    assert [(lease.name, lease.epoch) for lease in reply.leases] == [("partition/1", 2)]
    assert [member.member for member in reply.members] == ["m2"]


async def test_a_restart_honours_leases_for_one_time_to_live(house: House) -> None:
    """After a start a former holder may renew, and no other may take its lease before the time is up."""
    await house.acquire("partition/1", "partition/2")
    await house.restart()
    assert await house.acquire("partition/1", member="m2") == {}
    assert await house.acquire() == {"partition/1": 1, "partition/2": 1}
    await house.restart()
    house.clock.now += TTL * 1.1
    assert await house.acquire("partition/1", member="m2") == {"partition/1": 2}


async def test_the_lease_of_the_store_itself(house: House) -> None:
    """After a start the lease of the writer is free: the former one does not write any more, as this process does."""
    assert await house.acquire("store", member="store-1-a", role="store") == {"store": 1}
    await house.restart()
    assert await house.acquire("store", member="store-2-b", role="store") == {"store": 2}


async def test_that_time_begins_when_the_store_can_be_heard(house: House) -> None:
    """A holder that finds the address closed counts on one time to live from then on, and has two: so much it may need
    to find out that its connection leads nowhere.
    """
    await house.acquire("partition/1")
    await house.restart()
    house.clock.now += TTL * 0.9
    house.engine.leases.listening()
    house.clock.now += TTL * 1.9
    assert await house.acquire("partition/1", member="m2") == {}
    assert await house.acquire() == {"partition/1": 1}
    await house.restart()
    house.engine.leases.listening()
    house.clock.now += TTL * 2.1
    assert await house.acquire("partition/1", member="m2") == {"partition/1": 2}


async def test_a_store_that_ends_grants_nothing(house: House) -> None:
    """A holder that finds the address closed keeps its leases, and the store that comes back agrees: no other may have
    been granted what it holds meanwhile, by the one that still answers.
    """
    await house.acquire("partition/1")
    for _ in range(4):
        await house.acquire(member="m2")
        house.clock.now += TTL / 4
    house.engine.leases.closing()
    assert await house.acquire("partition/1", "partition/2", member="m2") == {}
    await house.restart()
    assert await house.acquire("partition/2", member="m2") == {"partition/2": 1}
    assert await house.acquire() == {"partition/1": 1}


async def test_an_epoch_that_the_store_has_forgotten(house: House) -> None:
    """A member that acquires names the epoch that it knows, and gets a later one: frames of that may be under way.
    One that the store knows to be past changes nothing; and it is on disk like any other.
    """
    assert await house.acquire("partition/1", "partition/2", acquire_above=[41]) == {
        "partition/1": 42,
        "partition/2": 1,
    }
    assert await house.acquire(release=["partition/1"]) == {"partition/2": 1}
    assert await house.acquire("partition/1", member="m2", acquire_above=[7]) == {"partition/1": 43}
    await house.restart()
    assert await house.acquire(member="m2") == {"partition/1": 43}
    with pytest.raises(CommandInvalid):
        await house.acquire("partition/3", acquire_above=[2**64 - 1])


async def test_a_release_survives_a_restart(house: House) -> None:
    """What was let go is free at once after a restart, and its epoch goes on counting."""
    await house.acquire("partition/1")
    await house.acquire(leaving=True)
    await house.append(enqueue(10, 1))
    await house.restart()
    assert await house.acquire("partition/1", member="m2") == {"partition/1": 2}


async def test_roles_do_not_see_each_other(house: House) -> None:
    """Tables and replies are about one role."""
    await house.acquire("partition/1")
    await house.acquire("router", member="r1", role="router")
    reply = await house.engine.leases.keep_alive(KeepAliveRequest(member="r1", role="router"))
    assert [lease.name for lease in reply.leases] == ["router"]
    assert [member.member for member in reply.members] == ["r1"]


async def test_watchers_see_every_change(house: House) -> None:
    """A watch gives the whole table, then again at acquisition, expiry and departure, with growing versions."""
    watch = house.engine.leases.watch("queue")
    tables = [await anext(watch)]
    await house.acquire("partition/1")
    tables.append(await anext(watch))
    house.clock.now += TTL * 1.1
    tables.append(await asyncio.wait_for(anext(watch), 30))  # noticed by the timer
    await house.acquire("partition/1", member="m2")
    tables.append(await anext(watch))
    await house.acquire(member="m2", leaving=True)
    tables.append(await anext(watch))
    holders = [{lease.name: lease.member for lease in table.leases} for table in tables]
    assert holders == [{}, {"partition/1": "m1"}, {}, {"partition/1": "m2"}, {}]
    versions = [table.version for table in tables]
    assert versions == sorted(set(versions))
    await house.restart()
    assert (await anext(house.engine.leases.watch("queue"))).version > versions[-1]


async def test_recovery_asks_for_the_epoch(house: House) -> None:
    """A member that is not the current owner is told so."""
    await house.acquire("partition/1")
    assert await house.recovered(1, Fence(lease="partition/1", epoch=1))
    with pytest.raises(Fenced):
        await house.recovered(1, Fence(lease="partition/1", epoch=0))


async def test_a_member_needs_a_name(house: House) -> None:
    """The empty name means "no holder" on disk."""
    with pytest.raises(CommandInvalid):
        await house.acquire("partition/1", member="")
