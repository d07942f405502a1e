"""Clients of 0-9-1 are told of attempts by headers, where a queue limits them."""

from __future__ import annotations

import pytest

from services.common.message.amqp_0_9 import FORMAT, compose
from services.gateway.protocols.amqp_0_9.counted import counted

PROPERTIES = compose({"message-id": "m"}, {"a": 1, "x-delivery-count": 9}, persistent=True, priority=0)


@pytest.mark.parametrize(
    ("attempts", "acquired", "said"),
    [
        (0, 0, {"a": 1, "x-delivery-count": 9}),
        (0, 2, {"a": 1, "x-acquired-count": 2}),
        (1, 2, {"a": 1, "x-acquired-count": 2, "x-delivery-count": 1}),
    ],
)
def test_what_they_say(attempts: int, acquired: int, said: dict[str, int]) -> None:
    """In place of what another queue has said; whatever else a message has is as it was."""
    [properties] = counted([PROPERTIES], attempts, acquired)
    assert dict(FORMAT.headers(properties)) == said
    assert FORMAT.text(properties, "message-id") == "m"
