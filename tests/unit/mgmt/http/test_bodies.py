"""Whose body of a request over HTTP makes room for whose."""

from __future__ import annotations

import structlog

from services.mgmt.http.bodies import EACH, Bodies


class Peer:
    def __init__(self) -> None:
        self.closed = False

    def cut_off(self) -> None:
        self.closed = True


async def test_who_began_first_makes_room() -> None:
    """Where bodies do not come to their end; those that are whole are answered, and the log says so once."""
    bodies, whole, crowd = Bodies(4 * EACH), Peer(), [Peer() for _ in range(20)]
    bodies.note(whole, EACH // 2, whole=False)
    bodies.note(whole, EACH // 2, whole=True)
    with structlog.testing.capture_logs() as logged:
        for each in crowd:
            bodies.note(each, EACH, whole=False)
            assert bodies.total <= bodies.limit
    assert [each.closed for each in crowd] == [True] * 17 + [False] * 3
    assert not whole.closed
    assert len(logged) == 1


async def test_where_all_are_whole() -> None:
    """The next one is closed, until one of them is answered."""
    bodies, first, late, later = Bodies(EACH), Peer(), Peer(), Peer()
    bodies.note(first, EACH, whole=True)
    bodies.note(late, 1, whole=True)
    assert (first.closed, late.closed) == (False, True)
    bodies.forget(first)
    bodies.note(later, EACH, whole=True)
    assert not later.closed


async def test_a_large_one() -> None:
    """Counts as a mebibyte among all, however large it is: its client has signed in."""
    bodies, peer = Bodies(64 * EACH), Peer()
    for _ in range(64):
        bodies.note(peer, EACH, whole=False)
    assert (bodies.total, peer.closed) == (EACH, False)
    bodies.forget(peer)
    assert bodies.total == 0


async def test_large_ones_have_a_budget_too() -> None:
    """What goes beyond a mebibyte each: the client whose body became large last is closed, the others are read on."""
    bodies, large = Bodies(8 * EACH), [Peer() for _ in range(4)]
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
