"""What is remembered is bounded by number and by size."""

from __future__ import annotations

from services.common.memo import Memo


def test_it_begins_again_when_it_is_full() -> None:
    """By number or by size, whichever comes first; what is too large by itself is not kept, nor does it push out."""
    memo: Memo[int, str] = Memo(3, 100)
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
