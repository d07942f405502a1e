from __future__ import annotations

import pytest

from services.gateway.sessions.credit import WINDOW_MESSAGES, CreditMode, LinkCredit, Prefetch, Window, window_of


@pytest.mark.parametrize(
    ("mode", "shared", "capacity"),
    [
        (Window(), 0, WINDOW_MESSAGES),
        (Window(), 7, 7),
        (Prefetch(5), 0, 5),
        (Prefetch(5), 7, 5),
        (Prefetch(5), 3, 3),
        (LinkCredit(up_to=9, sent=2), 0, 7),
        (LinkCredit(up_to=9, sent=11), 0, 0),
    ],
)
def test_what_may_be_on_the_way(mode: CreditMode, shared: int, capacity: int) -> None:
    """A limit over all consumers of a session makes it less; a client that gives credit says all of it."""
    assert mode.capacity(shared) == capacity


@pytest.mark.parametrize(
    ("room", "messages"), [(64 << 10, 4000), (2 << 20, 8192), (4 << 20, 16_000), (1 << 40, 16_000)]
)
def test_a_window_without_limit_goes_by_the_room(room: int, messages: int) -> None:
    """As many messages of a usual size as may be on the way; so each has a part of them where consumers are many."""
    window = window_of(room)
    assert window.capacity(0) == messages
    assert [window.grantable(due) for due in (messages // 2 - 1, messages // 2)] == [0, messages // 2]


@pytest.mark.parametrize(
    ("mode", "written", "settled", "held"),
    [(Window(), 2, 0, 0), (Prefetch(5), 0, 2, 2), (LinkCredit(up_to=9), 0, 0, 0)],
)
def test_when_credit_comes_back(mode: CreditMode, written: int, settled: int, held: int) -> None:
    """With the socket's room, with settlements, or only by the client's word."""
    assert (mode.written(2), mode.settled(2), mode.held(2)) == (written, settled, held)


def test_what_is_granted_at_once() -> None:
    """Where a limit waits for it all of it is; else not before half a window is due."""
    half = WINDOW_MESSAGES // 2
    assert [Window().grantable(due) for due in (half - 1, half)] == [0, half]
    assert [mode.grantable(due) for mode in (Prefetch(5), LinkCredit()) for due in (-1, 1)] == [0, 1, 0, 1]


def test_link_credit() -> None:
    """It counts deliveries since the link began: what was not sent after all uses none."""
    credit = LinkCredit()
    assert credit.is_used_up
    assert credit.take(5) == 5
    credit.written(5)
    assert (credit.room, credit.is_used_up) == (0, True)
    assert credit.kept_back(2) == 2
    assert (credit.room, credit.take(3)) == (2, -2)
    assert credit.is_used_up
