"""What a gateway does with requests to the management node: order, bounds, who asks, what is published."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.common.authentication.fair_slots import FairSlots
from services.common.authentication.principal import Principal
from services.common.errors import NotFound, Unavailable
from services.common.message.amqp_0_9 import FORMAT, compose
from services.common.message.facts import facts_of
from services.common.topology.slots import SlotName
from services.gateway import vocabulary as v
from services.gateway.management.forms import Requester
from services.gateway.management.forms.amqp_0_9 import FORM
from services.gateway.management.line import BYTES, LARGEST, MOST, Line, Room, waiting_of
from services.gateway.sessions.consumer import ConsumerState
from services.rpc import mgmt_pb2 as pb
from tests.support.desked import Desked
from tests.support.messages import kind as kind_of
from tests.support.messages import published
from tests.support.permitted import Ruled
from tests.support.published import Client, ScriptedRouter


class Consuming(SimpleNamespace):
    """In place of a consumer."""


async def test_the_way_of_messages_does_not_wait() -> None:
    """While mgmt takes its time the session goes on: others are published, a request is confirmed and not returned."""
    desked = Desked()
    desked.mgmt.may.clear()
    await desked.asks(1, mandatory=True, first=1)
    await desked.client.does(published([b"m"], kind_of()))
    assert desked.client.handed.bodies == [b"m"]
    assert (desked.client.confirmed, desked.client.back) == ([(1, 1)], [])
    desked.mgmt.may.set()
    await desked.done()
    assert [each[:3] for each in desked.replies[1:]] == [("/replies", "c1", 200)]
    await desked.desk.stop()


async def test_one_after_the_other() -> None:
    """Requests of a connection are carried out in the order in which they came."""
    desked = Desked()
    desked.mgmt.may.clear()
    await desked.asks(1, 2)
    await desked.asks(3)
    await asyncio.sleep(0.01)
    assert desked.mgmt.numbers == [1]
    desked.mgmt.may.set()
    await desked.done()
    assert desked.mgmt.numbers == [1, 2, 3]
    assert [each[1] for each in desked.replies] == ["c1", "c2", "c3"]


async def test_no_more_than_there_is_room_for() -> None:
    """Beyond a hundred that wait, one is what any message is that no queue takes: returned where that is wanted."""
    desked = Desked()
    desked.mgmt.may.clear()
    await desked.asks(*range(MOST + 3), mandatory=True)
    [returned] = desked.client.back
    assert list(returned.indexes) == [MOST, MOST + 1, MOST + 2]
    desked.mgmt.may.set()
    await desked.done()
    assert len(desked.replies) == MOST


def test_bytes_of_a_line() -> None:
    """What waits has no more bytes than that, and one that is too large counts for none: it is not kept."""
    line, size = Line(Room(), "anna"), LARGEST - 1
    large = waiting_of("amqp-0-9", FORM, Requester(), b"", bytes(size))
    assert [line.add(large) for _ in range(6)] == [True] * (BYTES // size) + [False] * (6 - BYTES // size)
    assert line.add(waiting_of("amqp-0-9", FORM, Requester(), b"", bytes(LARGEST + 1)))
    for _ in range(BYTES // size + 1):
        line.next()
    assert (line.weight, line.add(large)) == (0, True)


def test_who_asks_too_much() -> None:
    """Who that is may be as long as the properties: ids are kept for the answer, and count."""
    line, ids = Line(Room(), "anna"), bytes(LARGEST)
    waiting = waiting_of("amqp-1-0", FORM, Requester("q", ids), ids, bytes(LARGEST))
    assert waiting.too_large
    assert [line.add(waiting) for _ in range(5)] == [True] * 4 + [False]


async def test_what_is_too_large() -> None:
    """Is answered, and mgmt is not asked."""
    desked = Desked()
    await desked.asks(1, body=bytes(LARGEST + 1))
    await desked.done()
    assert ([each[2] for each in desked.replies], desked.mgmt.asked) == ([413], [])


@pytest.mark.parametrize(
    ("fault", "status"), [(Unavailable("no mgmt"), 503), (NotFound("no such call"), 500), (RuntimeError("x"), 500)]
)
async def test_what_goes_wrong(fault: Exception, status: int) -> None:
    """The reply says that management is away, or that it is our fault; the next request has its turn."""
    desked = Desked()
    desked.mgmt.fault = fault
    await desked.asks(1)
    await desked.done()
    desked.mgmt.fault = None
    await desked.asks(2)
    await desked.done()
    assert [each[2] for each in desked.replies] == [status, 200]


async def test_who_asks() -> None:
    """Is told with the request: the user as its provider knows it, of that moment, and where it comes from."""
    desked = Desked()
    ruled = Ruled("anna", ("allow_all",), Principal("anna", "ldap", frozenset({"staff"}), frozenset({"management"})))
    desked.client.permitted = ruled.permitted
    await desked.asks(1)
    await desked.done()
    ruled.permitted.renew(Principal("anna", "ldap", frozenset({"others"})))
    await desked.asks(2)
    await desked.done()
    first, second = (each.who for each in desked.mgmt.asked)
    assert first == pb.SignedIn(
        name="anna", provider="ldap", groups=["staff"], tags=["management"], host="127.0.0.1"
    )  # fmt: skip
    assert (list(second.groups), list(second.tags)) == (["others"], [])
    assert desked.mgmt.actor == "anna (ldap) from its peer, over AMQP"
    assert desked.mgmt.asked[0].virtual_host == "/"


async def test_where_a_reply_goes() -> None:
    """To the queue of that name, even with a slash in it; else to an exchange, by what stands behind the slash."""
    desked = Desked()
    desked.client.broker.topology.by_name[SlotName("/", "a/b")] = object()
    for reply_to in ("q", "a/b", "x/k", "x/"):
        await desked.asks(1, reply_to=reply_to)
        await desked.done()
    assert [each[0] for each in desked.replies] == ["/q", "/a/b", "x/k", "x/"]


async def test_no_reply() -> None:
    """Goes nowhere, to the node itself, to who goes meanwhile, or where the user may not publish; it is done."""
    desked = Desked()
    for reply_to in ("", v.MANAGEMENT, "none/k"):
        await desked.asks(1, reply_to=reply_to)
        await desked.done()
    desked.mgmt.may.clear()
    await desked.asks(1)
    await asyncio.sleep(0.01)
    desked.client.lost = True
    desked.mgmt.may.set()
    await desked.done()
    assert (len(desked.mgmt.asked), desked.replies) == (4, [])


@pytest.mark.parametrize("how", [{"closing": True}, {"parting": True}, {"lost": True}])
async def test_who_is_there_no_more(how: dict[str, bool]) -> None:
    """Changes nothing more: when a user is deleted its connections end, and what waits is not asked in its name."""
    desked = Desked()
    desked.mgmt.may.clear()
    await desked.asks(1, 2, 3)
    await asyncio.sleep(0.01)
    desked.ends(**how)
    desked.mgmt.may.set()
    await desked.done()
    assert desked.mgmt.numbers == [1]


async def test_who_is_ended_while_others_are_served() -> None:
    """Where mgmt has enough to do, a request is not begun: it is not asked when its turn comes."""
    desked = Desked()
    desked.desk._at_once = slots = FairSlots(1, 0)
    async with slots.slot("others", good=True):
        await desked.asks(1)
        await asyncio.sleep(0.01)
        desked.ends(closing=True)
    await desked.done()
    assert desked.mgmt.asked == []


async def test_what_was_read_before_the_end() -> None:
    """Is not taken any more, when its session comes to it after the broker has ended the connection."""
    desked = Desked()
    desked.ends(closing=True)
    await desked.asks(1, mandatory=True)
    await desked.done()
    assert (desked.mgmt.asked, [list(each.indexes) for each in desked.client.back]) == ([], [[0]])


async def test_who_says_goodbye_at_once() -> None:
    """Has asked for one thing all the same."""
    desked = Desked()
    desked.ends(parting=True)
    await desked.asks(1, 2)
    await desked.done()
    assert desked.mgmt.numbers == [1]


async def test_replies_to_a_consumer() -> None:
    """An address of a consumer stands for its queue, on its own connection, while there is such a consumer."""
    desked, consumer = Desked(), Consuming(state=ConsumerState.ATTACHED)
    desked.desk.expect(cast("Any", desked.client), "replies", "its queue", cast("Any", consumer))
    await desked.asks(1)
    await desked.done()
    consumer.state = ConsumerState.ENDED
    await desked.asks(2)
    await desked.done()
    other = Client(ScriptedRouter())
    assert desked.desk._replies.get(cast("Any", other)) is None
    assert [each[0] for each in desked.replies] == ["/its queue", "/replies"]
    desked.desk.expect(cast("Any", desked.client), "other", "q", cast("Any", consumer))
    assert desked.desk._replies[cast("Any", desked.client)].keys() == {"other"}


async def test_who_consumed_of_the_node_and_has_gone() -> None:
    """Is not kept: its consumer leads to it."""
    desked = Desked()
    client = Client(ScriptedRouter())
    consumer = Consuming(state=ConsumerState.ENDED, session=SimpleNamespace(connection=client))
    desked.desk.expect(cast("Any", client), "replies", "its queue", cast("Any", consumer))
    kept = weakref.ref(client)
    del client, consumer
    gc.collect()
    assert kept() is None
    assert not desked.desk._replies


async def test_replies_are_no_part_of_the_session() -> None:
    """Neither of its confirms nor of its transaction."""
    desked = Desked()
    await desked.asks(1, first=1)
    await desked.done()
    await desked.client.does(published([b"m"], kind_of(), first=2))
    [ticket] = [each for each in desked.client.handed.tickets if each]
    ticket.settled(range(1), [])
    assert desked.client.confirmed == [(1, 1), (2, 2)]
    assert desked.client.broker.sessions == {desked.client.session: None}


DEEP: Any = 1
for _ in range(400):
    DEEP = {"x": DEEP}


@pytest.mark.parametrize(
    ("told", "why"), [({"x": 10**30}, "64 bits"), ({"k" * 300: 1}, "255 bytes"), (DEEP, "within each other")]
)
async def test_what_no_reply_can_hold(told: Any, why: str) -> None:
    """Is said with a status of its own: who asks does not wait for ever, and is answered the next time."""
    desked = Desked()

    async def manage(request: pb.ManageRequest) -> pb.ManageReply:
        body = told if b'"n": 1' in request.request else {}
        return pb.ManageReply(status=200, description="OK", body=json.dumps({"results": [[body]]}).encode())

    desked.mgmt.manage = manage  # type: ignore[method-assign]
    await desked.asks(1, 2)
    await desked.done()
    assert [each[:3] for each in desked.replies] == [("/replies", "c1", 500), ("/replies", "c2", 200)]
    properties = desked.client.handed.messages[0].properties[0]
    assert why in FORMAT.headers(properties)["statusDescription"]
    await desked.desk.stop()


async def test_a_long_refusal() -> None:
    """Fits into a frame, whatever of the request is repeated in it."""
    desked = Desked()

    async def manage(_request: pb.ManageRequest) -> pb.ManageReply:
        return pb.ManageReply(status=400, description=f"not {'x' * 100_000}")

    desked.mgmt.manage = manage  # type: ignore[method-assign]
    await desked.asks(1)
    await desked.done()
    headers = FORMAT.headers(desked.client.handed.messages[0].properties[0])
    assert (headers["statusCode"], len(headers["statusDescription"])) == (400, 1000)
    await desked.desk.stop()


async def test_others_are_returned_as_ever() -> None:
    """What reaches no queue and is for another address is, also among requests, in their order."""
    desked = Desked()
    nowhere = kind_of(routing_key="nowhere", mandatory=True)
    properties = compose({"reply-to": "q"}, {"n": 1}, persistent=False, priority=0)
    attributes = FORMAT.attributes(properties)
    node = v.Kind(facts_of("/", "", v.MANAGEMENT, FORMAT.name, attributes), attributes, mandatory=True)
    of_exchange = v.Kind(facts_of("/", "x", v.MANAGEMENT, FORMAT.name, attributes), attributes, mandatory=True)
    kinds = [nowhere, node, of_exchange, node, nowhere]
    await desked.client.does(v.Publish(1, kinds, [properties] * 5, [b""] * 5))
    await desked.done()
    [returned] = desked.client.back
    assert (list(returned.indexes), len(desked.mgmt.asked)) == ([0, 2, 4], 2)


async def test_where_nobody_is_asked() -> None:
    """Without a desk the address is one that reaches no queue."""
    desked = Desked()
    desked.client.broker.management = None
    await desked.asks(1, mandatory=True)
    assert [list(each.indexes) for each in desked.client.back] == [[0]]
