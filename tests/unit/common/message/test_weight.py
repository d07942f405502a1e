"""What messages weigh: the sum of what each carries."""

from __future__ import annotations

import pytest

from services.common.message.weight import weight


@pytest.mark.parametrize("count", [1, 2, 3])
def test_bodies_by_themselves(count: int) -> None:
    """Who keeps bodies alone has them weighed without properties, one of them as well as several."""
    assert weight((), [b"12"] * count) == 2 * count


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_is_carried(count: int) -> None:
    """Properties count for each message, whether they are one object or not."""
    assert weight([b"123"] * count, [b"12"] * count) == 5 * count
    assert weight([bytes(number) for number in range(count)], [b""] * count) == sum(range(count))
