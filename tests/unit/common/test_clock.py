from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from services.common import clock
from services.common.clock import Clock, Epoch, epoch_ms, epoch_ns, monotonic, until_next


class Simulated:
    def __init__(self) -> None:
        self.seconds = 100.0
        self.ns = 1_700_000_000_123_456_789

    def monotonic(self) -> float:
        return self.seconds

    def time_ns(self) -> int:
        return self.ns


@pytest.fixture
def simulated() -> Iterator[Simulated]:
    source = Simulated()
    clock.set_source(source)
    yield source
    clock.set_source(clock.Machine())


def test_another_source(simulated: Simulated) -> None:
    """Code that holds a clock by its name, or as a default, uses the source that is set when it asks."""
    kept: Clock = monotonic
    assert (kept(), epoch_ns(), epoch_ms()) == (100.0, 1_700_000_000_123_456_789, 1_700_000_000_123)
    simulated.seconds, simulated.ns = 250.5, 5_000_000
    assert (kept(), epoch_ns(), epoch_ms()) == (250.5, 5_000_000, 5)


def test_until_next(simulated: Simulated) -> None:
    """A wait for a multiple of a time goes by the same clock."""
    simulated.seconds = 103.0
    assert until_next(10.0) == 7.0


def test_suspend() -> None:
    """The machine's monotonic clock is the one that goes on while the machine sleeps."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= monotonic() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_epoch_is_the_wall_clock(simulated: Simulated) -> None:
    """Unless it is set, the clock says what the wall clock says."""
    now = Epoch()
    for _ in range(1000):
        simulated.seconds += 0.37
        simulated.ns += 370_000_000
        assert abs(now() - epoch_ms()) <= 1


@pytest.mark.parametrize("jump", [3600, -3600])
def test_epoch_does_not_jump(simulated: Simulated, jump: int) -> None:
    """When the wall clock jumps by an hour, time goes on by a tenth faster or slower until it has caught up."""
    now = Epoch()
    before = now()
    simulated.ns += jump * 1_000_000_000
    assert now() == before
    for _ in range(100):
        simulated.seconds += 1
        simulated.ns += 1_000_000_000
        now()
    assert abs(now() - before - 100_000 * (1.1 if jump > 0 else 0.9)) <= 1
    simulated.seconds += 10 * 3600
    simulated.ns += 36_000 * 1_000_000_000
    assert now() == epoch_ms()


def test_epoch_never_goes_back(simulated: Simulated) -> None:
    """Not even when the monotonic clock does not move, or the wall clock returns from a jump."""
    now = Epoch()
    seen = []
    for jump in (5, -5, 0, 7200, -7200):
        simulated.ns += jump * 1_000_000_000
        simulated.seconds += 0.001
        seen.append(now())
    assert seen == sorted(seen)
