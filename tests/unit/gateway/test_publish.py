"""What becomes of publishes between a session and the publisher."""

from __future__ import annotations

import gc

from services.common.clients.outbound import Refused
from services.gateway import vocabulary as v
from services.rpc import queue_pb2 as pb
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


async def test_who_waits_for_messages_keeps_no_bodies() -> None:
    """Only what is on its way has them: those of a read that are done are gone, whatever else of it waits."""
    client, body = Client(), b"a body"
    await client.does(v.Confirms(1), published([body] * 3, kind()))
    [ticket] = client.handed.tickets
    assert ticket
    client.handed.messages.clear()
    gc.collect()
    keeping = [each for each in gc.get_objects() if isinstance(each, v.Publish) and body in each.bodies]
    assert keeping == []
    ticket.settled(range(3), [])
    assert client.confirmed == [(1, 3)]


async def test_immediate_messages_come_back() -> None:
    """Those that no consumer can take at once are what is returned, of all that were published with them."""
    client = Client()
    await client.does(v.Confirms(1), published([b"a", b"b", b"c"], kind(), kind(immediate=True), kind()))
    [ticket] = client.handed.tickets
    assert ticket
    ticket.settled(range(3), [Refused([1], 1, pb.NO_CONSUMERS)])
    [returned] = client.back
    assert [returned.publish.bodies[index] for index in returned.indexes] == [b"b"]
    assert client.confirmed == [(1, 3)]
