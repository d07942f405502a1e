"""Whose answer over HTTP makes room for whose."""

from __future__ import annotations

from operator import attrgetter

import structlog

from services.common.crowd import Whose
from services.mgmt.http.unread import Unread


class Peer:
    def __init__(self, place: str = "here") -> None:
        self.whose = Whose(place)
        self.closed = False

    def cut_off(self) -> None:
        self.closed = True


async def test_who_has_not_read_for_longest_makes_room() -> None:
    """However often it is looked at; the log says so once."""
    unread, crowd = Unread(10, attrgetter("whose")), [Peer() for _ in range(8)]
    with structlog.testing.capture_logs() as logged:
        for each in crowd:
            unread.note(each, 4)
            unread.note(each, 3)
    assert [each.closed for each in crowd] == [True] * 5 + [False] * 3
    assert (unread.total, len(logged)) == (9, 1)


async def test_a_crowd_makes_room_itself() -> None:
    """Who reads slowly from elsewhere goes on."""
    unread, slow, crowd = Unread(10, attrgetter("whose")), Peer("there"), [Peer() for _ in range(8)]
    unread.note(slow, 4)
    for each in crowd:
        unread.note(each, 3)
    assert (slow.closed, sum(not each.closed for each in crowd)) == (False, 2)


async def test_a_large_one() -> None:
    """Stays, where it is the only one; what is read takes no room."""
    unread, large, small = Unread(10, attrgetter("whose")), Peer(), Peer()
    unread.note(large, 30)
    assert not large.closed
    unread.forget(large)
    unread.note(small, 10)
    assert (unread.total, large.closed, small.closed) == (10, False, False)
