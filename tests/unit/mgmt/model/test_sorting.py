"""The order of thousands of values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from services.mgmt.model.sorting import AT_ONCE, places
from services.mgmt.turns import at_once

COUNT = 3 * AT_ONCE + 7
KINDS: dict[str, Callable[[random.Random], Any]] = {
    "numbers": lambda some: some.randrange(100),
    "fractions": lambda some: some.random(),
    "texts": lambda some: str(some.randrange(100)),
    "truths": lambda some: some.random() < 0.5,
    "some": lambda some: some.choice((None, some.randrange(100))),
    "none": lambda some: None,
    "all": lambda some: some.choice((None, 1, 2.5, True, "1", "nothing", ["a"])),
}


def _key(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, int | float) else (2, str(value))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("count", [0, 1, AT_ONCE, COUNT])
def test_as_all_at_once(kind: str, descending: bool, count: int) -> None:
    """As the sort of the language does it, in one step: equal ones stay as they were."""
    some = random.Random(7)
    values = [KINDS[kind](some) for _ in range(count)]
    expected = sorted(range(count), key=lambda place: _key(values[place]), reverse=descending)
    assert at_once(places(values, descending=descending)) == expected


class _Counted(int):
    """A number that counts how often one is compared."""

    compared = 0

    def __lt__(self, other: object) -> bool:
        _Counted.compared += 1
        return int(self) < int(other)  # type: ignore[call-overload, no-any-return]  # as it is here


def test_no_step_is_long() -> None:
    """Each compares a part, or goes through slices of parts that are in order already: of all values as of few."""
    some, most = random.Random(7), 0
    steps = places([_Counted(some.randrange(1 << 30)) for _ in range(20 * AT_ONCE)])
    before, total = 0, 0
    for _ in steps:
        total = _Counted.compared
        most, before = max(most, total - before), total
    assert AT_ONCE < most < AT_ONCE * 12
