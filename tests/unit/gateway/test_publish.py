"""What becomes of publishes between a session and the publisher."""

from __future__ import annotations

from services.gateway import vocabulary as v
from tests.support.messages import kind, published
from tests.support.published import Client


async def test_what_came_before_confirms_confirms_nothing() -> None:
    """Immediate messages have a ticket without numbers, which settles when others have them: those are not theirs."""
    client = Client()
    await client.does(published([b"i"] * 4, kind(immediate=True)), v.Confirms(1), published([b"d"] * 3, kind()))
    immediate, durable = client.handed.tickets
    assert immediate
    assert durable
    immediate.settled(range(4), [])
    assert client.confirmed == []
    durable.settled(range(3), [])
    assert client.confirmed == [(1, 3)]
