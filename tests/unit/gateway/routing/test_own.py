"""A gateway that evaluates finds the router's answer, after any changes, told in any way."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.clients.topology_mirror import TopologyMirror
from services.common.errors import BrokerError, SyntaxFault
from services.common.message import format_named
from services.common.message.facts import Attributes
from services.common.topology.message import OfHeaders
from services.gateway.routing import bindings as gateway_bindings
from services.gateway.routing import replica as gateway_replica
from services.gateway.routing.bindings import Bindings
from services.gateway.routing.own import OwnRoutes
from services.gateway.vocabulary import Publish
from services.router.topology.effects import Effects, News
from services.router.topology.topology import Topology
from services.router.wire import news_frame, snapshot_frames
from services.rpc import router_pb2
from tests.support.messages import kind, published
from tests.support.topology_bench import Bench, new_topology
from tests.support.topology_changes import EXCHANGES, HEADERS, KEYS, bindings, something
from tests.support.topology_changes import changes as any_change


class Gateway:
    """One that is told by a router; `placed`: it has its place."""

    def __init__(self) -> None:
        self.bindings = Bindings()
        self.mirror = TopologyMirror(self.bindings)
        self.own = OwnRoutes(self, self.bindings)
        self.placed = True

    @property
    def version(self) -> int:
        return self.mirror.version

    def has_place(self) -> bool:
        return self.placed

    def begin(self, topology: Topology, *, evaluated: bool = True) -> None:
        """A snapshot."""
        records = topology.all_records() if evaluated else None
        hosts = topology.virtual_hosts
        for frame in snapshot_frames(self.version + 1, hosts, topology.queues.values(), 1, records):
            self.mirror.take(frame)

    def hear(self, news: News) -> None:
        self.mirror.take(news_frame(self.version + 1, news, evaluates=True))

    def names(self, topology: Topology, exchange: str, key: str = "", headers: Any = None) -> set[str] | None:
        """Queues to which a message goes."""
        found = self.own.find("/", publish(exchange, key, headers))
        return None if found is None else {topology.queues[each].name for each in found[0]}


def publish(exchange: str, key: str = "", headers: Any = None, more: tuple[str, ...] = ()) -> Publish:
    properties = format_named("amqp-0-9").with_headers(b"\x00\x00", headers) if headers else b"\x00\x00"
    return published([b""], kind(exchange, key, more_keys=more), properties=[properties])


def in_step(bench: Bench) -> Gateway:
    gateway = Gateway()
    gateway.begin(bench.topology)
    return gateway


def told(bench: Bench, gateway: Gateway) -> None:
    """Of the last change."""
    bench.effects.news.records = bench.effects.records
    gateway.hear(bench.effects.news)


def same(topology: Topology, gateway: Gateway) -> None:
    for exchange, key in product(EXCHANGES, KEYS):
        now = topology.route("/", exchange, key, OfHeaders(HEADERS))
        found = gateway.own.find("/", publish(exchange, key, HEADERS))
        if now is None or now.unknown_exchange:
            assert found is None
        else:
            assert found
            assert set(found[0]) == set(now.queue_ids)
    for exchange in EXCHANGES:
        together(gateway, exchange)


def together(gateway: Gateway, exchange: str) -> None:
    """Messages of one request go where each goes alone, if that is known of each."""
    each = [publish(exchange, key, HEADERS) for key in (*KEYS, *KEYS)]
    alone = [gateway.own.find("/", one) for one in each]
    mixed = published(
        [b""] * len(each), *[one.kinds[0] for one in each], properties=[one.properties[0] for one in each]
    )
    found = gateway.own.find("/", mixed)
    assert found == (None if None in alone else [its[0] for its in alone if its])


@pytest.mark.fuzz
@given(st.lists(bindings | bindings | any_change, max_size=25), st.data())
def test_it_finds_what_the_router_finds(changes: Any, data: Any) -> None:
    """After any changes, told one by one or merged, from the beginning or from any snapshot."""
    topology, gateway, unsent = new_topology(), Gateway(), News()
    gateway.begin(topology)
    for change in [*something, *changes]:
        effects = Effects()
        with suppress(BrokerError):
            topology.change(change, effects)
        effects.news.records = effects.records
        unsent.add(effects.news)
        if data.draw(st.booleans()):
            gateway.hear(unsent)
            assert gateway.bindings.whole
            same(topology, gateway)
            unsent = News()
        elif data.draw(st.booleans()):
            gateway.begin(topology)  # what is unsent comes again
            same(topology, gateway)


def test_what_is_not_told_to_evaluate_is_asked_for() -> None:
    """Of a router that sends no bindings nothing is guessed, and later news do not change that."""
    bench, gateway = Bench(), Gateway()
    bench.queue("q")
    gateway.begin(bench.topology, evaluated=False)
    assert not gateway.own.usable
    bench.bind("amq.topic", "q", "#")
    told(bench, gateway)
    assert not gateway.own.usable


def test_without_a_place_nothing_is_found() -> None:
    """What is here may be old then."""
    gateway = in_step(Bench())
    assert gateway.own.usable
    gateway.placed = False
    assert not gateway.own.usable


def test_a_new_binding_counts_for_keys_that_were_found_before() -> None:
    """And one that is gone does not."""
    bench = Bench()
    bench.queue("q")
    gateway = in_step(bench)
    assert gateway.names(bench.topology, "amq.topic", "a.b") == set()
    bench.bind("amq.topic", "q", "a.*")
    told(bench, gateway)
    assert gateway.names(bench.topology, "amq.topic", "a.b") == {"q"}
    bench.do("unbind", source="amq.topic", destination="q", routing_key="a.*")
    told(bench, gateway)
    assert gateway.names(bench.topology, "amq.topic", "a.b") == set()


def test_a_deleted_queue_is_found_no_more() -> None:
    """By its name neither."""
    bench = Bench()
    bench.queue("q")
    bench.bind("amq.fanout", "q")
    gateway = in_step(bench)
    assert gateway.names(bench.topology, "", "q") == gateway.names(bench.topology, "amq.fanout") == {"q"}
    bench.do("delete_queue", name="q")
    told(bench, gateway)
    assert gateway.names(bench.topology, "", "q") == gateway.names(bench.topology, "amq.fanout") == set()


async def test_headers_decide_message_by_message() -> None:
    """Of one request, with one key, remembered or not."""
    bench = Bench()
    for number in range(3):
        bench.queue(f"q{number}")
        bench.bind("amq.headers", f"q{number}", arguments={"n": number})
    gateway = in_step(bench)
    properties = [publish("amq.headers", headers={"n": number}).properties[0] for number in (0, 1, 2, 1)]
    request = published([b""] * 4, kind("amq.headers", "k"), properties=properties)
    for _ in range(2):
        found = gateway.own.find("/", request)
        assert found
        assert [bench.topology.queues[targets[0]].name for targets in found] == ["q0", "q1", "q2", "q1"]
        answer = await gateway.own.ask("/", request)
        assert answer
        assert list(answer.targets) == list(found)


async def test_selectors_decide_message_by_message() -> None:
    """By what a message says besides its headers too; what another key leads to is remembered by that alone."""
    bench = Bench()
    bench.queue("q")
    bench.bind("amq.direct", "q", "k", arguments={"x-filter-jms-selector": "JMSPriority = 7"})
    bench.bind("amq.direct", "q", "other")
    gateway = in_step(bench)
    kinds = [kind("amq.direct", key, attributes=Attributes(priority=its)) for key in ("k", "other") for its in (7, 1)]
    request = Publish(1, kinds, [b"\x08\x00\x07", b"\x08\x00\x01"] * 2, [b""] * 4)
    for _ in range(2):
        found = gateway.own.find("/", request)
        assert found
        assert [len(targets) for targets in found] == [1, 0, 1, 1]
    bench.do("unbind", source="amq.direct", destination="q", routing_key="other")
    told(bench, gateway)
    found = gateway.own.find("/", request)
    assert found
    assert [len(targets) for targets in found] == [1, 0, 0, 0]


async def test_properties_that_cannot_be_read_are_a_fault() -> None:
    """Which `find` leaves to `ask`."""
    gateway = in_step(Bench())
    bad = published([b""], kind("amq.headers", "k"), properties=[b"\xff\xff\xff"])
    assert gateway.own.find("/", bad) is None
    with pytest.raises(SyntaxFault):
        await gateway.own.ask("/", bad)


async def test_why_publishing_there_is_refused() -> None:
    """As a router's answer has it: no such exchange, or an internal one; the others are not held against."""
    bench = Bench()
    bench.exchange("inside", internal=True)
    gateway = in_step(bench)
    kinds = [kind("gone", "k"), kind("inside", "k"), kind("amq.fanout", "k")]
    request = Publish(1, kinds, [b"\x00\x00"] * 3, [b""] * 3)
    assert gateway.own.find("/", request) is None
    answer = await gateway.own.ask("/", request)
    assert answer
    assert {each.facts.exchange: type(fault).__name__ for each, fault in answer.faults.items()} == {
        "gone": "NotFound",
        "inside": "AccessRefused",
    }
    nowhere = await gateway.own.ask("nowhere", publish("amq.fanout"))
    assert nowhere
    assert [fault.text for fault in nowhere.faults.values()] == ["no exchange 'amq.fanout' in vhost 'nowhere'"]


async def test_a_type_that_is_not_installed_here_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in may be the router's alone; other exchanges are evaluated all the same."""
    monkeypatch.setattr(gateway_replica, "_installed", lambda: ("direct", "fanout", "headers"))
    bench = Bench()
    bench.exchange("t", "topic")
    bench.queue("q")
    bench.bind("t", "q", "#")
    gateway = in_step(bench)
    assert gateway.own.find("/", publish("t", "k")) is None
    assert await gateway.own.ask("/", publish("t", "k")) is None
    assert gateway.names(bench.topology, "", "q") == {"q"}


def test_a_record_that_cannot_be_read_is_the_end_of_the_copy() -> None:
    """Half a copy would lose messages; the next snapshot begins anew."""
    bench = Bench()
    gateway = in_step(bench)
    bad = router_pb2.TopologyRecord(kind="binding", key="[]", value=b"{}")
    gateway.mirror.take(router_pb2.TopologyFrame(version=gateway.version + 1, records=[bad]))
    assert not gateway.own.usable
    gateway.begin(bench.topology)
    assert gateway.own.usable


def test_too_many_bindings_are_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they come with a snapshot or one by one: memory is for messages."""
    monkeypatch.setattr(gateway_bindings, "_MOST", 2)
    bench = Bench()
    bench.queue("q")
    for key in ("a", "b"):
        bench.bind("amq.direct", "q", key)
    gateway = in_step(bench)
    assert gateway.own.usable
    bench.bind("amq.direct", "q", "c")
    told(bench, gateway)
    assert not gateway.own.usable
    assert not in_step(bench).own.usable


def test_long_selectors_weigh_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled, they take memory; when they are gone, they do not."""
    monkeypatch.setattr(gateway_bindings, "_MOST", 20)
    bench = Bench()
    bench.queue("q")
    gateway, said = in_step(bench), {"x-filter-jms-selector": " OR ".join(f"a = {number}" for number in range(200))}
    bench.bind("amq.direct", "q", "k", arguments={"x-filter-jms-selector": "a = 1"})
    told(bench, gateway)
    bench.do(
        "unbind", source="amq.direct", destination="q", routing_key="k", arguments={"x-filter-jms-selector": "a = 1"}
    )
    told(bench, gateway)
    assert gateway.bindings._replica.count == 0
    bench.bind("amq.direct", "q", "k", arguments=said)
    told(bench, gateway)
    assert not gateway.own.usable


def test_what_is_remembered_is_bounded() -> None:
    """Keys that never come back take no more than all may, and those that do come back stay.

    Where no other exchange has a say there is nothing to remember of a key, but of all that match the same.
    """
    bench = Bench()
    bench.exchange("next", "fanout")
    bench.bind("amq.topic", "next", "#", to_exchange=True)
    gateway = in_step(bench)
    known = gateway.own._known
    for number in range(40_000):
        gateway.own.find("/", publish("amq.topic", f"new.{number}"))
        if not number % 1000:
            gateway.own.find("/", publish("amq.topic", "often"))
    assert len(known) + len(known._aside) <= 16384
    assert ("/", "amq.topic", "often") in {*known, *known._aside}
    seen = len(known)
    for number in range(1000):
        gateway.own.find("/", publish("next", f"new.{number}"))
    assert len(known) == seen
    assert len(gateway.own._ends) == 1


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout"])
@pytest.mark.parametrize("order", [("plain", "picky"), ("picky", "plain")])
def test_what_nothing_matches_goes_by_its_own_exchange(kind: Any, order: Any) -> None:
    """Of two of a type, one with an alternate exchange: that the other leads nowhere says nothing of it."""
    bench = Bench()
    bench.queue("rest")
    bench.exchange("x-rest", "fanout")
    bench.bind("x-rest", "rest", "")
    bench.exchange("plain", kind)
    bench.exchange("picky", kind, arguments={"alternate-exchange": "x-rest"})
    gateway = in_step(bench)
    expected: dict[str, set[str]] = {"plain": set(), "picky": {"rest"}}
    for exchange in (*order, *order):
        assert gateway.names(bench.topology, exchange, "b") == expected[exchange]


def test_more_keys_are_one_message() -> None:
    """Each exchange on the way looks at all of them."""
    bench = Bench()
    for name in ("a", "b"):
        bench.queue(name)
    gateway = in_step(bench)
    found = gateway.own.find("/", publish("", "a", more=("b", "a")))
    assert found
    assert {bench.topology.queues[each].name for each in found[0]} == {"a", "b"}


def test_an_exchange_that_was_declared_anew_is_another_one() -> None:
    """Of another type, told in one with the end of the one before; nothing of that is left."""
    bench = Bench()
    bench.queue("q")
    bench.exchange("e", "fanout")
    bench.bind("e", "q")
    gateway, unsent = in_step(bench), News()
    assert gateway.names(bench.topology, "e", "k") == {"q"}
    for change in (
        lambda: bench.do("delete_exchange", name="e"),
        lambda: bench.exchange("e", "direct"),
        lambda: bench.bind("e", "q", "other"),
    ):
        change()
        bench.effects.news.records = bench.effects.records
        unsent.add(bench.effects.news)
    gateway.hear(unsent)
    assert gateway.names(bench.topology, "e", "k") == set()
    assert gateway.names(bench.topology, "e", "other") == {"q"}


def test_nothing_of_a_deleted_virtual_host_is_kept() -> None:
    """Neither its exchanges nor its bindings, which count for the limit."""
    bench = Bench()
    bench.do("create_virtual_host", name="v")
    bench.do("declare_queue", virtual_host="v", name="q")
    bench.do("bind", virtual_host="v", source="amq.fanout", destination="q")
    gateway = in_step(bench)
    assert gateway.bindings._replica.count == 1
    bench.do("delete_virtual_host", name="v")
    told(bench, gateway)
    assert gateway.bindings.sources("v") is None
    assert gateway.bindings._replica.count == 0
    assert "v" not in gateway.bindings._replica._hosts


def test_which_exchanges_there_may_be() -> None:
    """They are the router's, some from the start; a gateway without a copy of them cannot tell."""
    bench = Bench()
    bench.exchange("shop")
    gateway = in_step(bench)
    names = ("shop", "", "amq.topic", "none")
    assert [gateway.bindings.has_exchange("/", name) for name in names] == [True, True, True, False]
    assert not gateway.bindings.has_exchange("other", "shop")
    bench.do("delete_exchange", name="shop")
    told(bench, gateway)
    assert not gateway.bindings.has_exchange("/", "shop")
    gateway.begin(bench.topology, evaluated=False)
    assert gateway.bindings.has_exchange("/", "shop")
