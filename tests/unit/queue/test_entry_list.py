"""The list of available entries: what is taken out by name, wherever it stands, is in it once when it comes back."""

from __future__ import annotations

import random

import pytest

from services.queue.machine.entry import AVAILABLE, Entry
from services.queue.machine.message import Message
from services.queue.machine.order import entry_list
from services.queue.machine.order.entry_list import EntryList
from tests.support.messages import facts


@pytest.fixture
def entries() -> EntryList:
    """Messages 0 to 9, of one byte each."""
    entries = EntryList()
    entries.extend([Entry(Message(uid, facts(), b"", b"x"), uid) for uid in range(10)], 10)
    return entries


def uids(entries: list[Entry]) -> list[int]:
    return [entry.message.uid for entry in entries]


@pytest.mark.parametrize("wanted", [{0}, {9}, {4, 5}, {0, 9}, {0, 1, 2}, {7, 8, 9}, set(range(10)), {3, 77}])
def test_acquire(entries: EntryList, wanted: set[int]) -> None:
    """Those that are asked for leave, in order; the rest stays, in order, and new ones come behind it."""
    assert uids(entries.acquire(set(wanted))) == sorted(wanted - {77})
    rest = [uid for uid in range(10) if uid not in wanted]
    assert (entries.count, entries.size) == (len(rest), len(rest))
    entries.extend([Entry(Message(10, facts(), b"", b"x"), 10)], 1)
    assert uids(entries.take(100, 100, 0, [])) == [*rest, 10]
    assert (entries.count, entries.size) == (0, 0)


def test_acquire_again(entries: EntryList) -> None:
    """What came back can be asked for again, and counts once: a count that is wrong would never become 0."""
    for _ in range(3):
        taken = entries.acquire({2, 3, 99})
        assert uids(taken) == [2, 3]
        assert entries.count == 8
        entries.put_back(taken)
        assert [entry.state for entry in taken] == [AVAILABLE] * 2
    assert uids(entries.clear()) == list(range(10))


def test_withdraw(entries: EntryList) -> None:
    """One of the middle, of those that came back, the first and the last: the others stay as they were."""
    back = entries.take(4, 100, 0, [])
    entries.put_back(back)
    by_uid = {entry.message.uid: entry for entry in entries.view(-1)}
    for uid in (5, 1, 0, 9, 6):
        taken = entries.withdraw(by_uid[uid])
        assert (taken.message.uid, taken.position, by_uid[uid].message.body) == (uid, uid, b"")
        assert uid not in uids(list(entries.view(-1)))
    entries.extend([Entry(Message(10, facts(), b"", b"x"), 10)], 1)
    assert (entries.count, entries.size) == (6, 6)
    assert uids(entries.take(100, 100, 0, [])) == [2, 3, 4, 7, 8, 10]
    assert (entries.count, entries.size, entries.peek()) == (0, 0, None)


@pytest.mark.parametrize("back", [False, True])
def test_places_of_what_was_withdrawn(*, back: bool) -> None:
    """They are closed, though what is before and behind them stays; in the chain, and among what came back."""
    entries, count = EntryList(), 20_000
    entries.extend([Entry(Message(uid, facts(), b"", b"x"), uid) for uid in range(count)], count)
    if back:
        entries.put_back(entries.take(count, count, 0, []))
    every = list(entries.view(-1))
    for entry in every[1:-1]:
        entries.withdraw(entry)
    places, at = len(entries._returned), entries._head
    while at is not None:
        places, at = places + 1, at.next
    assert places < 2000
    assert entries.clear() == [every[0], every[-1]]


def test_what_comes_back_in_any_order(entries: EntryList) -> None:
    """Has its place whenever something is taken or looked at, however much came back before and since."""
    draw = random.Random(1)
    entries.extend([Entry(Message(uid, facts(), b"", b"x"), uid) for uid in range(10, 100)], 90)
    away, ready = uids(taken := entries.take(100, 1000, 0, [])), set[int]()
    draw.shuffle(away)
    by_uid = {entry.message.uid: entry for entry in taken}
    while away:
        some = [away.pop() for _ in range(min(len(away), draw.choice([1, 1, 1, 40])))]
        entries.put_back([by_uid[uid] for uid in some])
        ready.update(some)
        first = entries.peek()
        assert first is not None
        assert first.message.uid == min(ready)
        if draw.random() < 0.3:
            assert uids(list(entries.view(20))) == sorted(uid for uid in ready if uid > 20)
        elif draw.random() < 0.3:
            assert entries.pop() is first
            ready.discard(first.message.uid)
    assert uids(entries.clear()) == sorted(ready)


def test_much_comes_back_behind_more(entries: EntryList, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sorted: the list would move in memory for each of them, which is seconds for a client's million."""
    monkeypatch.setattr(entry_list, "insort", lambda *_, **__: pytest.fail("its place was looked for by itself"))
    taken = entries.take(10, 100, 0, [])
    entries.extend([Entry(Message(uid, facts(), b"", b"x"), uid) for uid in range(10, 2000)], 1990)
    taken += entries.take(2000, 1 << 40, 0, [])
    entries.put_back(taken[1:1900])
    assert entries.pop() is taken[1]
    entries.put_back(taken[1900:])
    assert entries.pop() is taken[2]
    assert uids(entries.clear()) == list(range(3, 2000))


class Watched(Entry):
    """Counts how often its place is asked for."""

    asked = 0

    @property
    def position(self) -> int:  # type: ignore[override]
        Watched.asked += 1
        return self.message.uid

    @position.setter
    def position(self, _value: int) -> None: ...


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_much_comes_back_one_by_one(entries: EntryList, order: int, *, looks: bool) -> None:
    """Little is looked at for each of them, however much is there: a client decides how many there are."""
    entries.clear()
    entries.extend([Watched(Message(uid, facts(), b"", b"x"), uid) for uid in range(5000)], 5000)
    taken = entries.take(5000, 5000, 0, [])
    Watched.asked = 0
    for entry in taken[::order]:
        entries.put_back([entry])
        if looks:
            entries.peek()
    assert uids(entries.clear()) == list(range(5000))
    assert Watched.asked < 40 * 5000
