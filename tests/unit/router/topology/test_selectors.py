"""Selectors of bindings: refused where they are none, heeded on every way, and looked at only where they may matter."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import PreconditionFailed
from services.common.message import arguments, format_named
from services.common.message.facts import Attributes, facts_of
from services.common.selectors import selector
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.message import Published
from services.router.evaluate import evaluate
from services.rpc.router_pb2 import Message
from tests.support.others_turns import others_turns
from tests.support.topology_bench import Bench

RED = {"x-filter-jms-selector": "colour = 'red'"}
EACH: dict[str, tuple[Any, Any, Any]] = {
    "x-filter-jms-selector": ("colour = 'red'", 1, "colour ="),
    "x-qpid-no-local": (True, 1, "own"),
}
"""A value that is right, one of a wrong type, and one that is impossible."""


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("exchange", ["amq.direct", "amq.fanout", "amq.topic", "amq.match"])
def test_each(bench: Bench, exchange: str, name: str) -> None:
    """What is wrong is refused by its name, and binds nothing."""
    bench.queue("q")
    right, *wrong = EACH[name]
    for value in wrong:
        with pytest.raises(PreconditionFailed, match=f"invalid arg '{name}' for a binding of exchange '{exchange}'"):
            bench.bind(exchange, "q", arguments={name: value})
        assert not bench.effects.records
        assert bench.route(exchange).queue_ids == set()
    assert bench.bind(exchange, "q", arguments={name: right}).created


def test_each_is_another_binding(bench: Bench) -> None:
    """As with RabbitMQ's arguments: what any of them selects comes, once; each is undone by itself."""
    bench.queue("q")
    blue = {"x-filter-jms-selector": "colour = 'blue'"}
    for table in (RED, blue):
        assert bench.bind("amq.direct", "q", "k", arguments=table).created
    assert not bench.bind("amq.direct", "q", "k", arguments=RED).created
    assert bench.names("amq.direct", "k", {"colour": "blue"}) == {"q"}
    bench.do("unbind", source="amq.direct", destination="q", routing_key="k", arguments=blue)
    assert bench.names("amq.direct", "k", {"colour": "blue"}) == set()
    assert bench.names("amq.direct", "k", {"colour": "red"}) == {"q"}


def test_what_was_bound_before_it_was_too_much(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that binds at each start finds its binding, though a new one like it is refused."""
    bench.queue("q")
    bench.bind("amq.direct", "q", "k", arguments=RED)
    monkeypatch.setattr(selector, "MOST_WORDS", 1)
    assert not bench.bind("amq.direct", "q", "k", arguments=RED).created
    with pytest.raises(PreconditionFailed, match="more than 1 words"):
        bench.bind("amq.direct", "q", "other", arguments=RED)


def test_exchanges_and_alternates(bench: Bench) -> None:
    """An exchange that is bound with a selector gets what it selects; what no binding passes on has the alternate."""
    for name in ("red", "rest"):
        bench.queue(name)
    bench.exchange("first", "fanout", arguments={"alternate-exchange": "amq.topic"})
    bench.bind("first", "amq.direct", to_exchange=True, arguments=RED)
    bench.bind("amq.direct", "red", "k")
    bench.bind("amq.topic", "rest", "#")
    assert bench.names("first", "k", {"colour": "red"}) == {"red"}
    assert bench.names("first", "k", {"colour": "blue"}) == {"rest"}


def test_other_keys_are_not_looked_at(bench: Bench) -> None:
    """A message needs to be looked at only where its key leads to a binding with a selector, and until that is gone."""
    bench.queue("q")
    bench.bind("amq.topic", "q", "a.*", arguments=RED)
    bench.bind("amq.topic", "q", "b")
    assert bench.route("amq.topic", "a.x").needs_headers
    assert not bench.route("amq.topic", "b").needs_headers
    bench.do("unbind", source="amq.topic", destination="q", routing_key="a.*", arguments=RED)
    assert not bench.route("amq.topic", "a.x").needs_headers


def test_what_was_bound_before_there_were_selectors(bench: Bench) -> None:
    """Text that is no selector had no effect then, and has none; blank text never has."""
    queue = bench.queue("q")
    for said in ("colour =", " "):
        binding = Binding(queue.id, "k", arguments.dump({"x-filter-jms-selector": said}))
        bench.topology.virtual_hosts["/"].restore_binding("amq.direct", binding)
        assert bench.names("amq.direct", "k") == {"q"}
        assert not bench.route("amq.direct", "k").needs_headers
        bench.topology.virtual_hosts["/"].drop_binding("amq.direct", binding)
    assert bench.names("amq.direct", "k") == set()


def _properties(**headers: Any) -> bytes:
    return format_named("amqp-0-9").with_headers(b"\x18\x00\x02\x07", headers)  # persistent, of priority 7


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        ("JMSPriority > 6 AND JMSDeliveryMode = 'PERSISTENT'", True),
        ("JMSPriority < 7", False),
        ("colour = 'red' AND NOT JMSRedelivered", True),
        ("JMSExpiration = 0", True),
    ],
)
async def test_what_a_router_is_asked_about(bench: Bench, selector: str, selects: bool) -> None:
    """Selectors see the message's own properties, as its publisher's gateway does, which asks where it cannot say."""
    queue = bench.queue("q")
    bench.bind("amq.fanout", "q", arguments={"x-filter-jms-selector": selector})
    asked = {
        "virtual_host": "/",
        "exchange": "amq.fanout",
        "format": "amqp-0-9",
        "properties": _properties(colour="red"),
    }
    [routed, unread, unsaid] = await evaluate(
        bench.topology,
        [
            Message(**asked),
            Message(**{**asked, "properties": b"\xff"}),
            Message(virtual_host="/", exchange="amq.fanout"),
        ],
    )
    assert list(routed.queue_ids) == [queue.id] * selects
    assert routed.needs_headers
    assert unread.needs_headers
    assert (list(unsaid.queue_ids), unsaid.needs_headers) == ([], True)


async def test_many_selectors_give_others_their_turns(bench: Bench) -> None:
    """Between messages that are asked about many of them; about others, all are answered in one turn."""
    queue = bench.queue("q")
    for number in range(200):
        bench.bind("amq.fanout", "q", arguments={"x-filter-jms-selector": f"number = {number}"})
    for exchange, least in (("amq.fanout", 3), ("amq.topic", 0)):
        asked = {"virtual_host": "/", "exchange": exchange, "format": "amqp-0-9", "properties": _properties(number=7)}
        async with others_turns() as others:
            answers = await evaluate(bench.topology, [Message(**asked)] * 10)
        assert [list(each.queue_ids) for each in answers] == [[queue.id] * (least > 0)] * 10
        assert least <= others.count <= 5


def test_when_a_message_expires() -> None:
    """Is not known before a queue has it: neither that it does not, nor when."""
    facts = facts_of("/", "e", "k", "amqp-0-9", Attributes(ttl_ms=5))
    assert Published(facts, b"\x00\x00").look_up("JMSExpiration") is None
    assert Published(facts._replace(ttl_ms=None), b"\x00\x00").look_up("JMSExpiration") == 0
