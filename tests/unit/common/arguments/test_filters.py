"""Filters that queues give their consumers."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.arguments import filters


def test_the_shortest_period_counts() -> None:
    """Of several, each a number or its text; a selector beside them is read as before."""
    table: dict[str, Any] = {
        "a": {filters.REPLAY: ["60"]},
        "b": {filters.REPLAY: [5]},
        "c": {filters.SELECTOR: ["d = 1"]},
    }
    assert filters.wrong(table) is None
    assert (filters.replay_of(table), filters.selector_of(table)) == (5, "d = 1")
    assert filters.replay_of({}) is None


@pytest.mark.parametrize("argument", ["soon", "-1", -1, True, 1.5, None, 1 << 40])
def test_what_is_no_period(argument: object) -> None:
    """Is wrong, and why is said."""
    assert filters.wrong({"n": {filters.REPLAY: [argument]}})


@pytest.mark.parametrize(
    "given", [{}, {filters.REPLAY: []}, {filters.REPLAY: ["1", "2"]}, {filters.REPLAY: "1"}, {"x": ["1"]}]
)
def test_what_is_no_filter(given: object) -> None:
    """One kind that is known, with one argument."""
    assert filters.wrong({"n": given})
