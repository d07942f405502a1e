"""What is remembered is bounded by number and by size."""

from __future__ import annotations

from typing import Any

from services.common.memo import Memo, Room


def test_it_begins_again_when_it_is_full() -> None:
    """By number or by size, whichever comes first; what is too large by itself is not kept, nor does it push out."""
    memo: Memo[int, str] = Memo(6, 200)
    for key in range(3):
        memo.put(key, "x", 10)
    assert (dict(memo), memo.size) == ({0: "x", 1: "x", 2: "x"}, 30)
    memo.put(3, "x", 10)
    assert (dict(memo), memo.size) == ({3: "x"}, 10)
    memo.put(4, "x", 90)
    assert (dict(memo), memo.size) == ({3: "x", 4: "x"}, 100)
    memo.put(5, "x", 1)
    assert (dict(memo), memo.size) == ({5: "x"}, 1)
    memo.put(6, "x", 101)
    assert dict(memo) == {5: "x"}
    memo.clear()
    assert (dict(memo), memo.size) == ({}, 0)


def test_what_comes_back_is_not_pushed_out() -> None:
    """A thousand keys that never come again leave those that do where they can be found."""
    memo: Memo[int, str] = Memo(100, 10_000)
    memo.put(-1, "again", 1)
    for key in range(1000):
        memo.put(key, "once", 1)
        if key % 20 == 0:
            assert (memo.get(-1) or memo.recall(-1)) == "again"
    assert memo.recall(1) is None
    assert len(memo) + len(memo._aside) <= 100


def test_what_is_laid_aside_counts() -> None:
    """It comes back with the size that it had on average."""
    memo: Memo[int, str] = Memo(100, 100)
    memo.put(1, "x", 40)
    memo.put(2, "y", 40)
    assert (dict(memo), memo.size) == ({2: "y"}, 40)
    assert memo.recall(1) == "x"
    assert (dict(memo), memo.size) == ({1: "x"}, 40)


def test_what_is_heavy_comes_back_as_it_was() -> None:
    """Also among many that are light: those that are asked for again and again would be more each time."""
    memo: Memo[int, bytes] = Memo(200, 10_000)
    heavy = 0
    for generation in range(50):
        memo.put(-generation - 1, bytes(4000), 4000)
        for key in range(generation + 1):
            memo.get(-key - 1) or memo.recall(-key - 1)
        for key in range(100):
            memo.put(generation * 100 + key, b"x", 1)
        kept = [*memo.values(), *memo._aside.values()]
        heavy = max(heavy, sum(map(len, kept)))
    assert heavy <= 10_000


def test_all_of_a_room_are_bounded_together() -> None:
    """However many there are, each of which is within its own bounds: those that have most begin again."""
    room = Room(1_000_000)
    few: Memo[int, str] = Memo(8192, 1 << 20, room)
    for key in range(20):
        few.put(key, "x", 300)
    memos: list[Memo[int, str]] = [Memo(8192, 1 << 20, room) for _ in range(20)]
    for key in range(1000):
        for memo in memos:
            memo.put(key, "x", 300)
    assert sum(memo.size for memo in memos) <= 1_000_000
    assert room.used <= 1_000_000
    assert len(few) == 20
    assert any(memos)


def test_what_is_gone_takes_no_room() -> None:
    """Nor what was cleared."""
    room = Room(1 << 20)
    first: Memo[int, str] = Memo(8192, 1 << 20, room)
    second: Memo[int, str] = Memo(8192, 1 << 20, room)
    for key in range(100):
        first.put(key, "x", 300)
        second.put(key, "x", 300)
    del first
    assert 0 < room.used <= 100 * 600
    second.clear()
    assert room.used == 0


def test_what_is_laid_aside_takes_room() -> None:
    """Until it is dropped."""
    room = Room(1 << 20)
    memo: Memo[int, str] = Memo(20, 1 << 20, room)
    for key in range(30):
        memo.put(key, "x", 9000)
    assert len(memo) + len(memo._aside) == 20
    assert room.used == 20 * 9300


def test_very_many_that_hold_little_are_seen() -> None:
    """Each tells of what it holds before all that is not told of is much: ten thousand connections have little each."""
    room = Room(1_000_000)
    memos: list[Memo[int, str]] = [Memo(8192, 1 << 20, room) for _ in range(2000)]
    for key in range(3):
        for memo in memos:
            memo.put(key, "x", 1000)
    assert sum(memo.size for memo in memos) <= 1_000_000
    memos.clear()
    del memo
    assert room.used == 0


def test_few_tell_seldom() -> None:
    """So that a word costs nothing, where one is."""
    told: list[int] = []

    class Told(Room):
        def tell(self, memo: Memo[Any, Any], size: int) -> None:
            told.append(size)
            super().tell(memo, size)

    memo: Memo[int, str] = Memo(8192, 1 << 20, Told(64 << 20))
    for key in range(1000):
        memo.put(key, "x", 20)
    assert 1 <= len(told) <= 1000 * 320 // 8000
