"""What goes in circles is interrupted."""

from __future__ import annotations

import itertools

import pytest

from tests.simulation.standing_still import StandsStill, interrupted


def test_a_circle() -> None:
    """It is said where."""
    with pytest.raises(StandsStill, match=r"test_a_circle \(.*test_standing_still.py"), interrupted(0.05):
        for _ in itertools.count():
            pass


def test_what_ends() -> None:
    """Nothing comes of it later."""
    with interrupted(0.05):
        pass
    sum(range(10_000_000))
