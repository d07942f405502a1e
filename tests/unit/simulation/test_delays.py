"""How publishers say a time."""

from __future__ import annotations

from tests.simulation.delays import said


def test_delay() -> None:
    """A delay counts from when each message is sent."""
    found = said({"delay": 1500}, 10.0)
    assert (found.headers, found.due(11.0)) == ({"x-delay": 1500}, 12.5)


def test_moment() -> None:
    """A moment is the same for all messages of a step; who has no word for a delay says it too."""
    moment = 1_790_000_000_000 + 11_500
    assert said({"delay": 1500, "dated": True}, 10.0).headers == {"x-qpid-not-valid-before": moment}
    found = said({"delay": 1500}, 10.0, moments="x-opt-delivery-time", delays="")
    assert (found.headers, found.due(20.0)) == ({"x-opt-delivery-time": moment}, 11.5)


def test_nothing() -> None:
    """Most say nothing."""
    assert said({}, 10.0).due(10.0) is None
