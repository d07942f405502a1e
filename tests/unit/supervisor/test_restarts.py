from __future__ import annotations

from services.common.supervisor.restarts import ATTEMPTS, QUICK, Restarts


def test_first_death_is_repaired_at_once() -> None:
    """A program that served is started again without delay."""
    assert Restarts().delay_after(1.0, served=True) == 0


def test_quick_deaths_wait_longer_and_longer() -> None:
    """The delay doubles from 0.2 s to 5 s as long as the program dies quickly, never given up if it serves."""
    restarts = Restarts()
    delays = [restarts.delay_after(QUICK - 0.1, served=True) for _ in range(9)]
    assert delays == [0, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]


def test_a_long_life_clears_the_record() -> None:
    """Who lived long is started again at once, whatever came before."""
    restarts = Restarts()
    for _ in range(4):
        restarts.delay_after(0.1, served=True)
    assert restarts.delay_after(QUICK, served=True) == 0
    assert restarts.delay_after(0.1, served=True) == 0.2


def test_given_up() -> None:
    """Five starts in a row that never served are the end."""
    restarts = Restarts()
    delays = [restarts.delay_after(0.1, served=False) for _ in range(ATTEMPTS)]
    assert delays == [0, 0.2, 0.4, 0.8, None]


def test_serving_once_clears_failed_starts() -> None:
    """A start that served ends the row of failures."""
    restarts = Restarts()
    for _ in range(ATTEMPTS - 1):
        restarts.delay_after(0.1, served=False)
    assert restarts.delay_after(0.1, served=True) is not None
    assert restarts.delay_after(0.1, served=False) is not None


def test_never_given_up() -> None:
    """Who may not be given up is tried every five seconds, for ever."""
    restarts = Restarts(may_give_up=False)
    assert [restarts.delay_after(0.1, served=False) for _ in range(8)][-2:] == [5, 5]
