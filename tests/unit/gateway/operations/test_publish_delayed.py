"""A delay that a publisher asks for becomes a moment."""

from __future__ import annotations

from services.common.message.facts import Attributes
from tests.support.messages import kind, published
from tests.support.published import Client


async def test_from_when_it_was_received() -> None:
    """For those that say one, and no moment besides; the others are as they came.

    It is counted by the clock that does not jump, as times to live are.
    """
    client = Client()
    said = [Attributes(), Attributes(delay_ms=50), Attributes(delay_ms=50, not_before=7), Attributes(not_before=8)]
    kinds = [kind(attributes=each) for each in said]
    await client.does(published([b"%d" % number for number in range(4)], *kinds))
    facts = [each for messages in client.handed.messages for each in messages.facts]
    assert [each.not_before for each in facts] == [None, 1050, 7, 8]
    assert facts[0] is kinds[0].facts
    assert client.handed.bodies == [b"0", b"1", b"2", b"3"]
