"""Whose body of a request over HTTP makes room for whose."""

from __future__ import annotations

from operator import attrgetter

import structlog

from services.common.crowd import Whose
from services.mgmt.http.bodies import EACH, Bodies


class Peer:
    def __init__(self, place: str = "here", user: str = "") -> None:
        self.whose = Whose(place, user)
        self.closed = False

    def cut_off(self) -> None:
        self.closed = True


def _bodies(limit: int) -> Bodies:
    return Bodies(limit, attrgetter("whose"))


async def test_who_began_first_makes_room() -> None:
    """Where bodies do not come to their end; those that are whole are answered, and the log says so once."""
    bodies, whole, crowd = _bodies(4 * EACH), Peer(), [Peer() for _ in range(20)]
    bodies.note(whole, EACH // 2, whole=False)
    bodies.note(whole, EACH // 2, whole=True)
    with structlog.testing.capture_logs() as logged:
        for each in crowd:
            bodies.note(each, EACH, whole=False)
            assert bodies.total <= bodies.limit
    assert [each.closed for each in crowd] == [True] * 17 + [False] * 3
    assert not whole.closed
    assert len(logged) == 1


async def test_a_crowd_makes_room_itself() -> None:
    """Of one address; where all come from one, of one user, or of those that have not signed in."""
    for slow, whose in ((Peer("there"), ("here", "")), (Peer("here", "anna"), ("here", ""))):
        bodies, crowd = _bodies(4 * EACH), [Peer(*whose) for _ in range(20)]
        bodies.note(slow, EACH, whole=False)
        for each in crowd:
            bodies.note(each, EACH, whole=False)
        assert (slow.closed, sum(not each.closed for each in crowd)) == (False, 3)


async def test_large_ones_of_who_has_most() -> None:
    """Make room for one of another, though they were large before."""
    bodies, crowd, late = _bodies(8 * EACH), [Peer() for _ in range(3)], Peer("there")
    for each in crowd:
        bodies.note(each, 3 * EACH, whole=False)
    bodies.note(late, 4 * EACH, whole=False)
    assert [each.closed for each in (*crowd, late)] == [False, False, True, False]


async def test_where_all_are_whole() -> None:
    """The next one is closed, until one of them is answered."""
    bodies, first, late, later = _bodies(EACH), Peer(), Peer(), Peer()
    bodies.note(first, EACH, whole=True)
    bodies.note(late, 1, whole=True)
    assert (first.closed, late.closed) == (False, True)
    bodies.forget(first)
    bodies.note(later, EACH, whole=True)
    assert not later.closed


async def test_a_large_one() -> None:
    """Counts as a mebibyte among all, however large it is: its client has signed in."""
    bodies, peer = _bodies(64 * EACH), Peer()
    for _ in range(64):
        bodies.note(peer, EACH, whole=False)
    assert (bodies.total, peer.closed) == (EACH, False)
    bodies.forget(peer)
    assert bodies.total == 0


async def test_large_ones_have_a_budget_too() -> None:
    """What goes beyond a mebibyte each: the client whose body became large last is closed, the others are read on."""
    bodies, large = _bodies(8 * EACH), [Peer() for _ in range(4)]
    for _ in range(6):
        for each in large:
            if not each.closed:
                bodies.note(each, EACH // 2, whole=False)
    for _ in range(4):
        bodies.note(large[0], EACH, whole=False)
    assert bodies.beyond <= bodies.limit
    assert [each.closed for each in large] == [False, False, True, True]
    for each in large:
        bodies.forget(each)
    assert (bodies.total, bodies.beyond) == (0, 0)
