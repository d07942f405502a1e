"""Messages that come back wait before they are delivered again, longer with each attempt."""

from __future__ import annotations

import random
from functools import partial

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import FakeLink, Machine, Make


@pytest.fixture
def patient(make: Make) -> Make:
    return partial(make, delayed_retry_type="failed", delayed_retry_min=100, delayed_retry_max=250)


def clock(machine: Machine, now: int) -> list[int]:
    """What comes by that time."""
    while 0 < machine.queue.deadline() <= now:
        machine.queue.expire(now)
        machine.queue.dispatch(now)
    return machine.link.uids()


def test_longer_with_each_attempt(patient: Make) -> None:
    """As many times the least, and no longer than the most; it holds up nobody, and is told as redelivered."""
    machine, now = patient(), 0
    machine.publish(1)
    machine.consumer()
    machine.link.taken()
    for wait in (100, 200, 250, 250):
        machine.queue.settle(pb.RELEASE, [1], now)
        assert clock(machine, now + wait - 1) == []
        assert machine.queue.ready_count == 1
        now += wait
        machine.publish(1, now=now - 1)
        [newer] = machine.link.uids()
        assert newer > 1
        assert machine.queue.deadline() == now
        assert clock(machine, now) == [1]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("how", "wait"), [("claimed", 100), ("moved", 200)])
def test_what_waits_is_somebodys_meanwhile(patient: Make, how: str, wait: int, *, late: bool) -> None:
    """A gateway that says it has them, or management: they wait anew when they come back, and come once each, though
    the clock be late for both times.
    """
    machine, meanwhile = patient(), FakeLink(7)
    consumer = machine.consumer(messages=3)
    machine.publish(3)
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [1, 2, 3], 0)
    if how == "claimed":
        machine.queue.claim([1, 2, 3], meanwhile, 50, None)
    else:
        machine.queue.picking.take(list(machine.queue.entries()), meanwhile)
    machine.queue.settle(pb.RELEASE, [1, 2, 3], 50)
    machine.queue.credit(consumer, 3, 0, 50)
    assert late or clock(machine, 50 + wait - 1) == []
    machine.queue.expire(50 + wait)
    machine.queue.dispatch(50 + wait)
    assert machine.link.uids() == [1, 2, 3]
    assert machine.queue.ready_count == 0


@pytest.mark.parametrize("how", ["claimed", "moved"])
def test_what_waited_and_is_gone_is_forgotten(patient: Make, how: str) -> None:
    """It was somebody's meanwhile, came back to its place, and left from the middle: the clock has nothing to do."""
    machine, meanwhile = patient(), FakeLink(7)
    machine.consumer(messages=300)
    machine.publish(300, body=b"x" * 10_000)
    uids = machine.link.uids()
    machine.queue.settle(pb.RELEASE, uids, 0)
    if how == "claimed":
        machine.queue.claim(uids, meanwhile, 50, None)
    else:
        machine.queue.picking.take(list(machine.queue.entries()), meanwhile)
    machine.queue.settle(pb.RESTORE, uids, 50)
    assert len(machine.queue.picking.drop(list(machine.queue.entries()))) == 300
    for now in range(50, 500):
        machine.queue.expire(now)
    assert machine.queue.deadline() == 0


def test_a_browser_has_seen_it(patient: Make) -> None:
    """What comes back after its wait is shown to nobody once more."""
    machine, seeing = patient(), FakeLink()
    machine.publish(1)
    machine.consumer(link=seeing, browse=True, settled=True)
    machine.queue.dispatch(0)
    assert seeing.uids() == [1]
    machine.consumer(messages=2)
    machine.queue.dispatch(0)
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert clock(machine, 100) == [1]
    assert seeing.uids() == []


@pytest.mark.parametrize(
    ("kind", "delayed"),
    [
        ("failed", {pb.RELEASE}),
        ("returned", {pb.RETURN}),
        ("all", {pb.RELEASE, pb.RETURN}),
        ("disabled", set()),
    ],
)
@pytest.mark.parametrize("outcome", [pb.RELEASE, pb.RETURN, pb.ABANDON, pb.RESTORE])
def test_which_of_them_wait(make: Make, kind: str, delayed: set[int], outcome: pb.Outcome.ValueType) -> None:
    """Those that failed, that were only returned, or both; never those whose consumer is gone."""
    machine = make(delayed_retry_type=kind, delayed_retry_min=100)
    machine.publish(1)
    machine.consumer()
    machine.link.taken()
    machine.queue.settle(outcome, [1], 0)
    assert machine.link.uids() == ([] if outcome in delayed else [1])
    assert clock(machine, 100) == ([1] if outcome in delayed else [])


def test_meanwhile_it_is_a_message_like_others(patient: Make) -> None:
    """It expires, is purged, and goes after so many attempts."""
    machine = patient(delivery_limit=1, dead_letter_exchange="dlx")
    machine.consumer(messages=9)
    machine.publish(2, ttl_ms=50)
    machine.publish(2)
    machine.link.taken()
    machine.queue.settle(pb.RELEASE, [1, 3], 0)
    clock(machine, 50)
    assert machine.dead() == [(1, "expired")]
    assert clock(machine, 100) == [3]
    machine.queue.settle(pb.RELEASE, [3], 100)
    assert machine.dead() == [(3, "delivery_limit")]
    machine.queue.settle(pb.RELEASE, [4], 100)
    assert machine.queue.picking.purge() == 1
    assert clock(machine, 999) == []


def test_a_get_waits_for_it_too(patient: Make) -> None:
    """There is nothing to get until its time."""
    machine = patient()
    machine.publish(1)
    assert machine.queue.get(machine.link, 0, settled=False)
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert machine.queue.get(machine.link, 99, settled=False) is None
    entry = machine.queue.get(machine.link, 100, settled=False)
    assert entry is not None
    assert (entry.message.uid, entry.attempts) == (1, 1)


def test_what_says_a_time_itself_is_not_held(patient: Make) -> None:
    """Where the queue does not hold messages: it is published as any other."""
    machine = patient()
    machine.publish_headers([{}], not_before=500)
    machine.consumer()
    assert machine.link.uids() == [1]


def test_by_a_policy(make: Make) -> None:
    """From when it is set; cleared, what waits comes at its time."""
    machine = make()
    machine.publish(2)
    machine.consumer(link=(link := FakeLink()))
    link.taken()
    machine.adopt({"delayed-retry-type": "all", "delayed-retry-min": 100})
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert link.uids() == []
    machine.adopt({})
    machine.queue.settle(pb.RELEASE, [2], 0)
    assert link.uids() == [2]
    clock(machine, 100)
    assert link.uids() == [1]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 4)),
        st.tuples(st.just("later"), st.integers(1, 120)),
        st.tuples(st.sampled_from([pb.ACCEPT, pb.RELEASE, pb.ABANDON]), st.integers(0, 20)),
    ),
    max_size=40,
)


@given(STEPS)
def test_beside_a_naive_list(steps: list[tuple[str | int, int]]) -> None:
    """Each is with the consumer, done with, or waits until a time that was worked out by hand."""
    machine = Machine("classic", delayed_retry_type="failed", delayed_retry_min=30, delayed_retry_max=80)
    machine.consumer()
    now, held, waits, attempts = 0, set[int](), dict[int, int](), dict[int, int]()
    for step, number in steps:
        if step == "publish":
            uids = range(len(attempts) + 1, len(attempts) + number + 1)
            attempts |= dict.fromkeys(uids, 0)
            machine.publish(number, now=now)
            held |= set(uids)
        elif step == "later":
            now += number
        elif held:
            uid = sorted(held)[number % len(held)]
            held.discard(uid)
            attempts[uid] += 1
            machine.queue.settle(step, [uid], now)  # type: ignore[arg-type]
            waits |= {uid: now + min(30 * attempts[uid], 80)} if step == pb.RELEASE else {}
            held |= {uid} if step == pb.ABANDON else set()
        clock(machine, now)
        held |= {uid for uid, time in waits.items() if time <= now}
        waits = {uid: time for uid, time in waits.items() if time > now}
        assert set(machine.queue.unsettled) == held
        assert machine.queue.ready_count == len(waits)


def test_its_place_is_kept_once(patient: Make) -> None:
    """However often it waits for its time: what has left is swept out, and there would be no end of it."""
    machine, held, chance = patient(max_length=100), list[int](), random.Random(1)
    machine.publish(9)
    machine.consumer()
    for now in range(0, 20_000, 10):
        held += clock(machine, now)
        chance.shuffle(held)
        failed = [held.pop() for _ in range(-(-len(held) // 3))]
        machine.queue.settle(pb.RELEASE, failed, now)
    aside = machine.queue._entries.aside
    assert aside is not None
    assert len(aside._by_rank._heap) + len(aside._by_rank._swept) <= 9
    assert machine.queue.deadline() > 1
