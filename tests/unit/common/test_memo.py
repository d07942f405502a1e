"""What is remembered is bounded by number and by size."""

from __future__ import annotations

from services.common.memo import Memo


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
