"""What several wait for."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from services.mgmt.model.shared_steps import SharedSteps
from services.mgmt.turns import at_once


def _steps(taken: list[int], fault: Exception | None = None) -> Generator[None, None, str]:
    for number in range(6):
        taken.append(number)
        yield
    if fault:
        raise fault
    return "made"


def test_each_takes_a_part() -> None:
    """No step is taken twice, and all get what comes of them."""
    taken = list[int]()
    shared = SharedSteps(_steps(taken))
    first, second = shared.follow(), shared.follow()
    for each in (first, second, first, second):
        next(each)
    assert taken == [0, 1, 2, 3]
    assert at_once(first) == at_once(second) == at_once(shared.follow()) == "made"
    assert taken == [0, 1, 2, 3, 4, 5]


def test_a_fault() -> None:
    """All are told of it, and it is known that nothing comes of them."""
    shared = SharedSteps(_steps([], RuntimeError("a fault")))
    first, second = shared.follow(), shared.follow()
    next(second)
    assert not shared.failed
    for each in (first, second):
        with pytest.raises(RuntimeError, match="a fault"):
            at_once(each)
    assert shared.failed
