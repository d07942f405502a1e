"""A great many that may not be delivered yet, or that expire: what one turn does for all of them is little."""

from __future__ import annotations

from typing import Any

import pytest

from services.queue.machine import by_time
from services.queue.machine.aside import Aside
from services.queue.machine.entry import Entry
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.test_aside import HOLDS, publish
from tests.contract.queue_types.test_choosing import wanting
from tests.contract.queue_types.test_expiring import clock
from tests.support.queue_machine import FakeLink, Machine, Make

LATER = 1 << 40


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has a number for each time that all of them are gone through."""
    found, each_of = list[int](), Aside.__iter__

    def counted(self: Aside) -> Any:
        found.append(self.count)
        return each_of(self)

    monkeypatch.setattr(Aside, "__iter__", counted)
    return found


def test_read_back(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are ordered once, not each by itself."""
    before, after = make(table=HOLDS), make(table=HOLDS)
    publish(before, *range(LATER, LATER + 50), ttl=LATER + 100)
    entries = [Entry(each.message, each.position, each.expires) for each in before.queue.entries()]
    entries.sort(key=lambda entry: entry.position)
    monkeypatch.delattr(by_time, "heappush")
    after.queue.recover(entries, 0)
    assert after.queue.deadline() == LATER
    clock(after, LATER + 49)
    after.consumer(now=LATER + 49)
    assert after.link.uids() == list(range(1, 51))


def test_claims(make: Make, looks: list[int]) -> None:
    """Clients report one after the other what they hold: those that wait are gone through once for all of them."""
    machine = make(table=HOLDS)
    publish(machine, *[LATER] * 20, None)
    for uid in (21, 5, 99, 6, 5):
        machine.queue.claim([uid], FakeLink(), 0)
    assert looks == [20]
    assert set(machine.queue.unsettled) == {5, 6, 21}
    publish(machine, LATER)
    machine.queue.claim([22], FakeLink(), 0)
    assert set(machine.queue.unsettled) == {5, 6, 21, 22}


def test_immediate(make: Make, looks: list[int]) -> None:
    """What nobody takes at once goes, without a look at the others."""
    machine = make(table=HOLDS)
    publish(machine, *[LATER] * 20)
    machine.consumer(messages=1)
    assert publish(machine, None, LATER, None, immediate=True) == [(1, 1, pb.NO_CONSUMERS), (2, 1, pb.NO_CONSUMERS)]
    assert (machine.link.uids(), machine.queue.ready_count, looks) == ([21], 20, [])


@pytest.mark.parametrize("claimed", [False, True])
def test_nothing_is_kept_of_what_has_left(make: Make, *, claimed: bool) -> None:
    """Its time has come, or it was claimed and comes back: it has its place in the list, and expires there."""
    machine: Machine = make(table=HOLDS, max_length=9)
    publish(machine, None)
    publish(machine, 50 if claimed else 10, ttl=20)
    if claimed:
        machine.queue.claim([2], FakeLink(), 0)
        machine.queue.settle(pb.RELEASE, [2], 0)
    clock(machine, 10)
    clock(machine, 60)
    aside = machine.queue._entries.aside
    assert aside is not None
    assert machine.queue.ready_count == 1
    for its in (aside, aside._by_rank):
        its.tidy(0, 0)
        assert (its._known, its._heap, its._swept, its._size) == ({}, [], [], 0)


@pytest.mark.parametrize("table", [HOLDS, {}])
def test_nothing_is_kept_of_what_was_refused(make: Make, table: dict[str, bool]) -> None:
    """Immediate messages that a consumer did not choose, between others, and that would have expired some time."""
    machine: Machine = make(table=table)
    machine.consumer(interest=wanting("JMSPriority > 5"))
    publish(machine, None, None)
    assert publish(machine, None, None, ttl=50, immediate=True) == [(0, 1, pb.NO_CONSUMERS), (1, 1, pb.NO_CONSUMERS)]
    publish(machine, None)
    assert (machine.queue.ready_count, machine.queue.deadline()) in {(3, 0), (3, 50)}
    clock(machine, 50)
    expiring = machine.queue._entries.expiring
    assert (expiring._known, expiring._size, machine.queue.deadline()) == ({}, 0, 0)
    machine.consumer(link=(plain := FakeLink()), now=50)
    assert plain.uids() == [1, 2, 5]
