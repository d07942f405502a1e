"""Bytes that many share."""

from __future__ import annotations

from services.common.budget import Budget


def test_no_more_than_there_are() -> None:
    """Who asks for more than is left gets nothing; what is given back is there for others."""
    budget = Budget(10)
    assert budget.take(7)
    assert not budget.take(4)
    assert budget.take(3)
    budget.give_back(7)
    assert (budget.used, budget.take(7), budget.take(1)) == (3, True, False)
