"""What the judge says of attempts that clients of 0-9-1 are told."""

from __future__ import annotations

import pytest

from tests.support.written_history import Written


@pytest.mark.parametrize(
    ("failed", "acquired", "redelivered", "right"),
    [(None, 2, False, True), (1, 2, True, True), (2, 1, True, False), (1, 1, False, False)],
)
def test_counts(told: Written, failed: int | None, acquired: int, *, redelivered: bool, right: bool) -> None:
    """No more failed than there were, and none of what is said to come for the first time."""
    told.change("queue", queue="o", durable=True, arguments={"x-delivery-limit": 5})
    delivered = told.drain(told.publish("m", "o"), "o", redelivered=redelivered)
    said = {"x-delivery-count": failed} if failed else {}
    delivered.properties.headers = {"x-acquired-count": acquired, **said}
    assert ("nothing is changed" not in told.broken()) is right
