from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.gateway.connections.heartbeat import Heartbeat
from services.gateway.protocols.idleness import Idleness


class Idle:
    """A connection that says nothing but beats, and hears nothing; time passes by its timer."""

    def __init__(self, *agreed: float) -> None:
        self.now, self.beats, self.cut_at = 0.0, list[float](), 0.0
        self.engine = SimpleNamespace(idleness=Idleness(*agreed), beat=lambda: self.beats.append(self.now))
        self.last = SimpleNamespace(read=0.0, wrote=0.0)
        self.loop, self.timers = self, list[Any]()
        self.lost, self.held, self.name, self.peer = False, False, "1.1", "a peer"

    def time(self) -> float:
        """As the loop says."""
        return self.now

    def call_later(self, delay: float, _callback: object) -> float:
        """As the loop says."""
        return delay

    def write(self) -> None:
        """As Connection says."""
        self.last.wrote = self.now

    def cut_off(self) -> None:
        """As Connection says."""
        self.lost, self.cut_at = True, self.now

    def lives(self, until: float) -> None:
        """For so long."""
        heartbeat = Heartbeat(cast("Any", self))
        while self.now < until and not self.lost:
            heartbeat.beat()
            self.now += self.timers[0] if self.timers else 0


@pytest.mark.parametrize(
    ("agreed", "beats", "cut_at"),
    [
        ((5, 20), [5, 10, 15, 20], 22.5),
        ((0.5, 0), [each / 2 for each in range(1, 60)], 0),
        ((0, 20), [], 22.5),
        ((30, 20), [], 22.5),
    ],
)
def test_each_end_by_what_was_agreed_for_it(agreed: tuple[float, float], beats: list[float], cut_at: float) -> None:
    """Who wants beats often gets them, and need not send any itself where nobody waits for them."""
    idle = Idle(*agreed)
    idle.lives(30)
    assert (idle.beats, idle.cut_at) == (beats, cut_at)


def test_a_client_that_is_not_read_is_not_missed() -> None:
    """It is held back, and may have sent what it likes."""
    idle = Idle(5, 20)
    idle.held = True
    idle.lives(60)
    assert not idle.lost
