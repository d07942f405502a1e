"""The list of available entries: what is taken out by name, wherever it stands, is in it once when it comes back."""

from __future__ import annotations

import pytest

from services.queue.entry import AVAILABLE, Entry
from services.queue.entry_list import EntryList
from services.queue.message import Message
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
