"""What becomes of publishes between a session and the publisher."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from itertools import pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.clients.outbound import Refused
from services.common.errors import BrokerError, NotFound, SyntaxFault, Unavailable
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.facts import Attributes
from services.gateway import vocabulary as v
from services.gateway.outcomes import Released
from services.gateway.routing.answer import Answer
from services.rpc import queue_pb2 as pb
from tests.support.messages import PROPERTIES, kind, published
from tests.support.published import BAD, Client, ScriptedRouter


async def test_what_has_no_numbers_is_not_told_of() -> None:
    """Immediate messages have a ticket without numbers, which settles when others have them: those are not theirs."""
    client = Client()
    await client.does(published([b"i"] * 4, kind(immediate=True)), published([b"d"] * 3, kind(), first=1))
    immediate, durable = client.handed.tickets
    assert immediate
    assert durable
    immediate.settled(range(4), [])
    assert client.confirmed == []
    durable.settled(range(3), [])
    assert client.confirmed == [(1, 3)]


async def test_waiting_for_messages_keeps_no_bodies() -> None:
    """Only what is on its way has them: those of a read that are done are gone, though others of it wait."""
    client, body = Client(), b"a body"
    await client.does(published([body] * 3, kind(), first=1))
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
    await client.does(published([b"a", b"b", b"c"], kind(), kind(immediate=True), kind(), first=1))
    [ticket] = client.handed.tickets
    assert ticket
    ticket.settled(range(3), [Refused([1], 1, pb.NO_CONSUMERS)])
    [returned] = client.back
    assert [returned.publish.bodies[index] for index in returned.indexes] == [b"b"]
    assert client.confirmed == [(1, 3)]


@pytest.mark.parametrize(("queues", "returned"), [((1, 1), 0), ((1, 2), 1)])
async def test_an_immediate_message_comes_back_when_no_queue_has_it(queues: tuple[int, ...], returned: int) -> None:
    """However often one of its queues has refused it."""
    client = Client(ScriptedRouter({"both": (1, 2)}))
    await client.does(published([b"a"], kind(routing_key="both", immediate=True)))
    [ticket] = client.handed.tickets
    assert ticket
    ticket.settled(range(1), [Refused([0], queue_id, pb.NO_CONSUMERS) for queue_id in queues])
    assert len(client.back) == returned


async def test_what_the_router_does_not_say_of_a_link() -> None:
    """Each message hears that it could not be routed, in its place; what comes behind goes on."""
    client, unknown = Client(), kind(routing_key="never seen")
    client.router.dead = True
    of_link = published([b"1", b"2"], unknown, first=7)
    of_link.link = 1
    await client.does(of_link)
    client.router.dead = False
    await client.does(published([b"3"], unknown))
    assert client.errors == []
    [(link, first, last, outcome)] = client.told
    assert (link, first, last) == (1, 7, 8)
    assert isinstance(outcome, Released)
    assert isinstance(outcome.error, Unavailable)
    assert client.handed.bodies == [b"3"]


async def test_what_is_known_does_not_fail_with_what_is_not() -> None:
    """No router answers: what stands before the first unknown message is published, what stands behind it is not."""
    client, known, unknown = Client(), kind(routing_key="known"), kind(routing_key="never seen")
    await client.does(published([b"first"], known))
    client.router.dead = True
    await client.does(published([b"1", b"2", b"3", b"4"], known, known, unknown, known))
    assert client.handed.bodies == [b"first", b"1", b"2"]
    [error] = client.errors
    assert isinstance(error, Unavailable)


_MESSAGES = st.lists(st.sampled_from(["", "h", "hh", "none", "bad"]), min_size=1, max_size=20)


@pytest.mark.parametrize("remembered", [False, True])
@given(_MESSAGES)
def test_a_message_that_ends_its_session_takes_nothing_with_it(remembered: bool, messages: list[str]) -> None:
    """Wherever it stands: all before it is published in its order, and nothing behind it; its own fault is told."""
    asyncio.run(_published_until_bad(messages, remembered=remembered))


async def _published_until_bad(messages: list[str], *, remembered: bool) -> None:
    client = Client()
    kinds = [kind("h" if each == "bad" else each, str(number % 3)) for number, each in enumerate(messages)]
    bodies = [b"%d" % number for number in range(len(messages))]
    properties = [BAD if each == "bad" else PROPERTIES for each in messages]
    if remembered:
        for exchange in ("", "h", "hh"):
            await client.does(published([b""] * 2, kind(exchange, "0"), kind(exchange, "1")))
        client.handed.messages.clear()
    client.session.handle(published(bodies, *kinds, properties=properties))
    client.session.handle(published([b"behind"], kind()))
    await client.session.idle()
    before = list(takewhile(lambda each: each in {"", "h", "hh"}, messages))
    rest = messages[len(before) :]
    assert client.handed.bodies == bodies[: len(before)] + ([] if rest else [b"behind"])
    faults: list[type[BrokerError]] = [NotFound if rest[0] == "none" else SyntaxFault] if rest else []
    assert [type(error) for error in client.errors] == faults


async def test_one_bad_message_of_many_is_found_soon() -> None:
    """By a few questions of a read's thousands of messages, not by one for each."""
    client = Client()
    await client.does(published([b""] * 1000, kind("h"), properties=[b"%d" % each for each in range(999)] + [BAD]))
    assert len(client.handed.bodies) == 999
    assert len(client.router.asked) < 100


async def test_messages_with_keys_of_their_own_leave_others_their_turn() -> None:
    """A read of thousands that stay apart: some are published, then other work is done."""
    client, copied = Client(), kind(attributes=Attributes(copied=True))
    kinds, properties = (copied, kind()), [FORMAT.with_headers(PROPERTIES, {"CC": ["other"]}), PROPERTIES]
    bodies = [b"%d" % number for number in range(1000)]
    await client.does(published([b"", b""], *kinds, properties=properties))
    client.handed.messages.clear()
    client.session.handle(published(bodies, *kinds, properties=properties))
    done = [0]
    while done[-1] < 1000:
        await asyncio.sleep(0)
        done.append(len(client.handed.bodies))
    assert max(after - before for before, after in pairwise(done)) <= 50
    assert client.handed.bodies == bodies


class LookedUp(dict[v.Kind, BrokerError]):
    """What is looked up, and never walked through."""

    def __iter__(self) -> Iterator[v.Kind]:
        raise AssertionError("each fault was looked for among all messages")


async def test_the_first_fault_is_found_at_once() -> None:
    """However many of a read's messages have one: what is behind the first is not looked at."""
    client, kinds = Client(), [kind("none", str(number)) for number in range(100)]
    faults = LookedUp({each: NotFound(each.facts.routing_key) for each in kinds})

    async def ask(*_: object) -> Answer:
        return Answer(faults=faults)

    client.broker.routes.ask = ask
    await client.does(published([b"x"] * 100, *kinds))
    assert [error.text for error in client.errors] == ["0"]


async def test_small_messages_that_wait_count_for_what_they_take() -> None:
    """A connection is read no further when they take a megabyte, however short they are."""
    client = Client()
    client.session.handle(published([b"x"], kind(routing_key="asked for")))
    client.session.handle(published([b""] * 10_000, kind()))
    assert client.waiting > 600_000
    await client.session.idle()
    assert client.waiting == 0
