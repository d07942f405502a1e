"""Fair and sticky."""

from __future__ import annotations

from services.queue.share import plan


def test_alone_takes_all() -> None:
    """A process alone takes everything at once."""
    assert plan(8, set(), set(), 1, 1) == (list(range(8)), [])


def test_surplus_goes_in_small_moves() -> None:
    """Of what is more than a fair share a few are let go of at a time."""
    assert plan(8, set(range(8)), set(range(8)), 2, 3) == ([], [5, 6, 7])
    assert plan(8, set(range(5)), set(range(8)), 2, 3) == ([], [4])


def test_fair_share_stays() -> None:
    """Who has a fair share, rounded up, neither takes nor gives."""
    assert plan(8, {0, 1, 2}, set(range(8)), 3, 3) == ([], [])


def test_only_what_is_free() -> None:
    """What others hold is not asked for, and not more than the share."""
    assert plan(8, {0}, {0, 1, 2, 3}, 3, 3) == ([4, 5], [])


def test_joining_members_find_their_share() -> None:
    """What is free is left to members that are coming, and nothing is let go of for them yet."""
    assert plan(8, set(), set(), 1, 1, joining=1) == ([0, 1, 2, 3], [])
    assert plan(8, set(range(8)), set(range(8)), 1, 1, joining=1) == ([], [])
