"""What waits in columns is delivered, shown, counted and taken out as if each message were an entry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.queue.machine.entry import Entry
from services.queue.machine.order.entry_list import EntryList
from services.queue.machine.order.parcel import Parcel
from services.rpc import queue_pb2 as pb
from tests.support.messages import facts
from tests.support.queue_machine import Machine

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 6), st.sampled_from(["", "", "", "ttl", "key", "persistent"])),
        st.tuples(st.just("attach"), st.integers(0, 4), st.sampled_from(["settled", "settled", "settling", "browse"])),
        st.tuples(st.just("credit"), st.integers(0, 5), st.integers(0, 9)),
        st.tuples(st.just("small"), st.integers(0, 20), st.integers(0, 9)),
        st.tuples(st.just("get"), st.booleans(), st.none()),
        st.tuples(st.just("settle"), st.integers(0, 30), st.sampled_from([pb.ACCEPT, pb.RELEASE])),
        st.tuples(st.just("walk"), st.integers(1, 4), st.none()),
        st.tuples(st.just("drop"), st.integers(0, 30), st.none()),
        st.tuples(st.just("detach"), st.integers(0, 9), st.none()),
        st.tuples(st.just("purge"), st.none(), st.none()),
        st.tuples(st.just("expire"), st.none(), st.none()),
    ),
    max_size=40,
)


class _EntriesOnly(EntryList):
    takes_parcels = False


class _Side:
    """A queue with what is done to it."""

    def __init__(self, *, parcels: bool, durable: bool) -> None:
        self.machine = Machine(durable=durable)
        self.queue = self.machine.queue
        if not parcels:
            self.queue._entries.ready = _EntriesOnly()
        self.consumers: list[Any] = []
        self.walks: list[Any] = []
        self.now = 0

    def publish(self, count: int, how: str) -> object:
        its = facts(
            "e", "key" if how == "key" else "", persistent=how == "persistent", ttl_ms=5 if how == "ttl" else None
        )
        return self.machine.publish_mixed([its] * count, now=self.now, body=b"x" * count)

    def attach(self, credit: int, how: str) -> None:
        said = {"settled": how != "settling", "browse": how == "browse"}
        self.consumers.append(self.machine.consumer(messages=credit, now=self.now, **said))

    def credit(self, count: int, which: int, size: int = 0) -> None:
        if self.consumers:
            self.queue.credit(self.consumers[which % len(self.consumers)], count, size, self.now)

    def small(self, size: int, which: int) -> None:
        """Bytes of credit that do not suffice for what waits."""
        if self.consumers:
            consumer = self.consumers[which % len(self.consumers)]
            consumer.size = size
            self.credit(2, which)

    def get(self, settled: bool, _: None) -> object:
        entry = self.queue.get(self.machine.link, self.now, settled=settled)
        return entry and (entry.message.uid, entry.message.body, entry.position)

    def settle(self, which: int, outcome: pb.Outcome.ValueType) -> None:
        uids = list(self.queue.unsettled)
        self.queue.settle(outcome, uids[which % len(uids) :: 2] if uids else [], self.now)

    def walk(self, most: int, _: None) -> object:
        """Some of it, as far as it goes in one turn; others may have begun before."""
        self.walks.append(self.queue._entries.walk(held=True))
        return [[each.message.uid for each in walk.some(most)] for walk in self.walks]

    def drop(self, which: int, _: None) -> object:
        waiting = [each for each in self.queue.entries() if each.state == 0]
        if not waiting:
            return None
        entry = waiting[which % len(waiting)]
        found = self.queue._entries.acquire({entry.message.uid})
        self.queue._entries.forget(found)
        return [each.message.uid for each in found]

    def detach(self, which: int, _: None) -> None:
        if self.consumers:
            self.queue.detach(self.consumers.pop(which % len(self.consumers)), self.now)

    def purge(self, *_: None) -> object:
        return self.queue.picking.purge()

    def expire(self, *_: None) -> None:
        self.now += 10
        self.queue.expire(self.now)

    def told(self) -> object:
        its = self.queue._entries
        sums = its.count, its.size, its.position, its.holding.size, self.machine.account.used
        return sums, self.machine.link.taken(), self.machine.dead(), [each.messages for each in self.consumers]


def _plain(found: object) -> object:
    return [(each.message.uid, each.position, each.message.received) for each in found if isinstance(each, Entry)]  # type: ignore[attr-defined]


@pytest.mark.fuzz
@given(st.booleans(), _STEPS)
def test_as_if_each_were_an_entry(durable: bool, steps: list[tuple[str, Any, Any]]) -> None:
    """In any history both queues do the same, and at last have the same."""
    sides = [_Side(parcels=parcels, durable=durable) for parcels in (True, False)]
    for step, first, second in [("attach", 0, "settled"), ("publish", 4, ""), *steps]:
        answers = [getattr(side, step)(first, second) for side in sides]
        assert answers[0] == answers[1], step
        told = [side.told() for side in sides]
        assert told[0] == told[1], step
    packed, plain = (list(side.queue.entries()) for side in sides)
    assert _plain(packed) == _plain(plain)
    for side in sides:
        side.queue.settle(pb.ACCEPT, list(side.queue.unsettled), side.now)
        side.queue.picking.purge()
        assert side.machine.account.used == 0


def test_no_object_is_made_for_what_nobody_settles() -> None:
    """Of a consumer that has no credit at the moment, and settles nothing: what waits leaves as it came."""
    machine = Machine()
    consumer = machine.consumer(messages=0, settled=True)
    machine.publish(5)
    machine.publish(4)
    ready = machine.queue._entries.ready
    assert isinstance(ready.parcel(), Parcel)
    machine.queue.credit(consumer, 6, 0, 0)
    assert machine.link.uids() == [1, 2, 3, 4, 5, 6]
    rest = ready.parcel()
    assert rest
    assert len(rest) == machine.queue.ready_count == 3
    assert rest.bodies == [b"body"] * 4, "of what has gone little is kept"


def test_the_others_wait_on_as_they_came() -> None:
    """Who asks for one message has those unpacked that came with it, and no others."""
    machine = Machine()
    machine.consumer(messages=0, settled=True)
    for _ in range(3):
        machine.publish(4)
    entry = machine.queue.get(machine.link, 0, settled=False)
    assert entry
    assert entry.message.uid == 1
    ready = machine.queue._entries.ready
    assert isinstance(ready, EntryList)
    assert len(ready._parcels) == 2


def test_what_expires_behind_parcels_leaves_nothing_there() -> None:
    """Nobody takes anything: of what came and went meanwhile no more is kept than waits."""
    machine = Machine()
    machine.consumer(messages=0, settled=True)
    for _ in range(4):
        machine.publish(25)
    ready, now = machine.queue._entries.ready, 0
    assert isinstance(ready, EntryList)
    for _ in range(100):
        machine.publish(5, ttl_ms=5, now=now)
        now += 10
        machine.queue.expire(now)
    packed = [entry for each in ready._parcels for entry in each.entries()]
    linked = sum(1 for _ in _chain(ready))
    assert machine.queue.ready_count == 100
    assert len(packed) + linked < 2 * 100
    assert len(ready._parcels) < 100


def _chain(ready: EntryList) -> Iterator[Entry]:
    entry = ready.head
    while entry is not None:
        yield entry
        entry = entry.next


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(1, 9), st.integers(1, 9))
@example([1, 0], 2, 1)
def test_a_parcel_ends_where_credit_does(sizes: list[int], limit: int, size: int) -> None:
    """As entries do: the next is taken as long as there is credit for one more, and bytes of it."""
    parcel = _parcel([b"x" * each for each in sizes], properties=b"")
    left, taken = size, 0
    while taken < min(limit, len(sizes)) and left > 0:
        left -= sizes[taken]
        taken += 1
    assert parcel.end_of(limit, size) == taken


@pytest.mark.parametrize("count", [2_000, 20_000])
def test_credit_for_one_looks_at_no_more_than_a_few(count: int) -> None:
    """However many wait in the parcel, whose consumer may be sent messages without end but few bytes."""
    bodies = _Counted([b"x"] * count)
    parcel = _parcel(bodies)
    assert parcel.end_of(1 << 30, 1) == 1
    assert bodies.looks <= 1000


class _Counted(list[bytes]):
    """How many of it were asked for."""

    looks = 0

    def __getitem__(self, which: Any) -> Any:
        found = super().__getitem__(which)
        self.looks += len(found) if isinstance(which, slice) else 1
        return found


def _parcel(bodies: list[bytes], properties: bytes = b"\x00\x00") -> Parcel:
    machine = Machine()
    arrival = machine.arrival([facts("e")] * len(bodies), [properties] * len(bodies))
    parcel = Parcel(arrival, 0, len(bodies), 0)
    parcel.bodies = bodies
    return parcel


def test_one_of_many_parcels_is_unpacked_by_itself() -> None:
    """Of thousands the last is somebody's: the others wait as they came, and are looked at once."""
    machine = Machine()
    machine.consumer(messages=0, settled=True)
    for _ in range(3_000):
        machine.publish(4)
    ready = machine.queue._entries.ready
    assert isinstance(ready, EntryList)
    begin = time.process_time()
    found = ready.acquire({12_000})
    assert time.process_time() - begin < 0.1
    assert [each.message.uid for each in found] == [12_000]
    assert machine.queue.ready_count == 11_999
    ready.put_back(found)
    assert [each.message.uid for each in machine.queue.entries()] == list(range(1, 12_001))


def test_what_was_delivered_is_kept_no_longer() -> None:
    """Large bodies before many small ones: those that have gone are not in memory, as the account says."""
    machine = Machine()
    consumer = machine.consumer(messages=0, settled=True)
    its = [facts("e")] * 9
    arrival = machine.arrival(its)
    arrival.bodies = [bytes(1 << 20)] * 4 + [b""] * 5
    machine.queue.publish(arrival, 0)
    del arrival
    machine.queue.credit(consumer, 4, 0, 0)
    machine.link.taken()
    parcel = machine.queue._entries.ready.parcel()
    assert parcel
    assert sum(map(len, parcel.bodies)) < 1 << 20


def test_what_comes_one_by_one_is_an_entry() -> None:
    """Columns of one take more than an entry does; behind parcels such ones wait together."""
    machine = Machine()
    consumer = machine.consumer(messages=0, settled=True)
    machine.publish(1)
    ready = machine.queue._entries.ready
    assert isinstance(ready, EntryList)
    assert not ready.packed
    machine.publish(4)
    for _ in range(100):
        machine.publish(1)
    assert len(ready._parcels) == 2
    machine.queue.credit(consumer, 200, 0, 0)
    assert machine.link.uids() == list(range(1, 106))


def test_a_queue_ends_without_a_look_at_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record has all that it had, and their memory is given back: a great deal would take long one by one."""
    machine = Machine()
    consumer = machine.consumer(messages=0, settled=True)
    machine.publish(2)
    machine.publish(6)
    machine.publish(6, ttl_ms=5)
    machine.publish(2, persistent=True)
    machine.queue.credit(consumer, 3, 0, 0)
    monkeypatch.setattr(Parcel, "entries", None)
    assert sorted(machine.queue.all_gone(safe=True)) == list(range(4, 17))
    machine.queue.end(durable=True)
    assert machine.account.used == machine.queue.holding.size == 0
