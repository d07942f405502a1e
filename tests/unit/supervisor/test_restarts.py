from __future__ import annotations

from services.supervisor.restarts import ATTEMPTS, QUICK, Restarts


def test_first_death_is_repaired_at_once() -> None:
    """A program that can start is started again without delay."""
    assert Restarts().delay_after(1.0, cannot_start=False) == 0


def test_quick_deaths_wait_longer_and_longer() -> None:
    """The delay doubles from 0.2 s to 5 s as long as the program dies quickly, never given up if it can start."""
    restarts = Restarts()
    delays = [restarts.delay_after(QUICK - 0.1, cannot_start=False) for _ in range(9)]
    assert delays == [0, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]


def test_a_long_life_clears_the_record() -> None:
    """A child that lived long is started again at once, whatever came before."""
    restarts = Restarts()
    for _ in range(4):
        restarts.delay_after(0.1, cannot_start=False)
    assert restarts.delay_after(QUICK, cannot_start=False) == 0
    assert restarts.delay_after(0.1, cannot_start=False) == 0.2


def test_given_up() -> None:
    """Five starts in a row that failed are the end."""
    restarts = Restarts()
    delays = [restarts.delay_after(0.1, cannot_start=True) for _ in range(ATTEMPTS)]
    assert delays == [0, 0.2, 0.4, 0.8, None]


def test_another_end_clears_failed_starts() -> None:
    """An end of another kind ends the row of failures."""
    restarts = Restarts()
    for _ in range(ATTEMPTS - 1):
        restarts.delay_after(0.1, cannot_start=True)
    assert restarts.delay_after(0.1, cannot_start=False) is not None
    assert restarts.delay_after(0.1, cannot_start=True) is not None


def test_never_given_up() -> None:
    """A child that may not be given up is tried every five seconds, for ever."""
    restarts = Restarts(may_give_up=False)
    assert [restarts.delay_after(0.1, cannot_start=True) for _ in range(8)][-2:] == [5, 5]
