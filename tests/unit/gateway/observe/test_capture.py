"""Which messages a gateway captures, how much of them, and what it says that it cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.common.capture.cost import RECORD_KIND as TAKEN_KIND
from services.common.capture.cost import Cost
from services.common.capture.rules import RECORD_KIND, Rule
from services.common.errors import Unavailable
from services.gateway.observe import capture as module
from services.gateway.observe.capture import Capture
from services.rpc.ledger_pb2 import RECEIVED, SENT, Captured
from services.rpc.store_pb2 import Record, Records
from tests.support.capturing import WHO, WORK, Bus, Kept, capturing, costs, publish, request, rule_of, send, until


@pytest.fixture
def bus() -> Bus:
    return Bus()


def test_off_by_default(bus: Bus) -> None:
    """Without a rule, and without a ledger, nothing is called."""
    assert not capturing(bus).on
    without = Capture()
    without.set_rules([rule_of()])
    assert not without.on


def test_publishes(bus: Bus) -> None:
    """Of messages of one read those are captured whose exchange and key fit, with all that is known of them."""
    capture = capturing(bus, rule_of(exchange="ex", key="eu.*", client="shop"))
    publish(capture, ("ex", "eu.1"), ("ex", "us"), ("other", "eu.1"), ("ex", "eu.2"))
    assert bus.uids == [1, 4]
    [first, _] = bus.told
    assert (first.stage, first.rule, first.format) == (RECEIVED, "r", "amqp-0-9")
    assert (first.properties, first.body, first.size) == (b"\0\0", b"body", 4)
    assert (first.place.exchange, first.place.routing_key, first.place.queue) == ("ex", "eu.1", "")
    assert (first.place.connection, first.place.client) == ("5.1", "shop")


@pytest.mark.parametrize("client", ["bob", "5.2"])
def test_of_others(bus: Bus, client: str) -> None:
    """A rule does not capture what other clients publish."""
    publish(capturing(bus, rule_of(client=client)), ("ex", "eu.1"))
    assert not bus.told


def test_deliveries(bus: Bus) -> None:
    """A rule with a queue is about what is sent from it, one without about what is published."""
    capture = capturing(bus, rule_of(queue="wo*"))
    publish(capture, ("ex", "key"))
    send(capture, WORK, [1, 2])
    send(capture, WORK._replace(queue="other"), [3])
    assert bus.uids == [1, 2]
    assert (bus.told[0].stage, bus.told[0].place.queue, bus.told[0].place.consumer) == (SENT, "work", "tag")
    capture.set_rules([rule_of()])
    send(capture, WORK, [4])
    assert bus.uids == [1, 2]


def test_bodies_are_cut(bus: Bus) -> None:
    """Of a body its beginning is kept, and how long it was."""
    publish(capturing(bus, rule_of(body=3)), ("ex", "key"), body=b"123456")
    assert (bus.told[0].body, bus.told[0].size) == (b"123", 6)


def test_the_limit(bus: Bus) -> None:
    """What a rule has no room for is left out and counted, and the next one may take it."""
    small, large = rule_of("a", limit=1000), rule_of("b", key="k2")
    capture = capturing(bus, small, large)
    for number in range(3):
        publish(capture, ("ex", "k1"), ("ex", "k2"), body=bytes(350), first=2 * number)
    assert [(each.uid, each.rule) for each in bus.told] == [(0, "a"), (1, "a"), (3, "b"), (5, "b")]
    told = costs(capture)
    assert told["a"] == Cost(messages=2, bytes=2 * (350 + 2 + 128), left_out=2)
    assert (told["b"].messages, told["b"].left_out) == (2, 0)
    assert told["a"].bytes <= small.limit


def test_no_room_on_the_bus(bus: Bus) -> None:
    """What the bus has no room for is left out and counted, too."""
    bus.room = 1
    capture = capturing(bus, rule_of())
    publish(capture, ("ex", "key"), ("ex", "key"), ("ex", "key"))
    assert (costs(capture)["r"].messages, costs(capture)["r"].left_out) == (1, 2)


def test_it_ends(bus: Bus) -> None:
    """When the time of the last rule is over nothing is captured any more, and then nothing is asked."""
    now = [0]
    capture = capturing(bus, rule_of("a", seconds=1), rule_of("b", seconds=2, key="k2"), now=now)
    now[0] = 1_500
    publish(capture, ("ex", "k1"), ("ex", "k2"))
    assert bus.uids == [2]
    assert capture.on
    now[0] = 2_000
    publish(capture, ("ex", "k2"))
    assert (bus.uids, capture.on) == ([2], False)


def test_a_fault_is_not_the_client_s(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any fault of capturing, messages go on."""

    def fail(*_: object) -> bool:
        raise RuntimeError

    monkeypatch.setattr(Rule, "matches", fail)
    publish(capturing(bus, rule_of()), ("ex", "key"))


async def test_a_fault_is_of_one_message(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come after one that cannot be told are captured."""
    capture = Capture(bus, lambda: 0)
    capture.set_rules([rule_of()])
    put = bus.put

    def fail_once(_: Captured) -> bool:
        monkeypatch.setattr(bus, "put", put)
        raise RuntimeError

    monkeypatch.setattr(bus, "put", fail_once)
    reporting = asyncio.ensure_future(capture.report("gateway-1", Kept()))
    capture.published(WHO, request(*[b"body"] * 2), [1, 2])
    await until(lambda: bus.told)
    reporting.cancel()
    assert bus.uids == [2]


async def _records(*batches: Records) -> AsyncIterator[Records]:
    for batch in batches:
        yield batch


def _record(name: str, **terms: Any) -> Record:
    return Record(kind=RECORD_KIND, key=name, value=rule_of(name, **terms).to_json())


async def test_rules_come_and_go(bus: Bus) -> None:
    """Rules on record are followed: all at once, changes, and what is not understood is passed over."""
    capture = Capture(bus, lambda: 0)
    await capture.follow(_records(Records(records=[_record("a", key="k1")], snapshot=True, last=True)))
    assert (capture.on, list(costs(capture))) == (True, ["a"])
    publish(capture, ("ex", "k1"))
    changes = Records(records=[_record("b"), Record(kind=RECORD_KIND, key="c", value=b"{}")])
    whole = Records(records=[_record("a", key="k1")], snapshot=True, last=True)
    await capture.follow(_records(whole, changes))
    assert costs(capture)["a"].messages == 1, "a rule that stays goes on counting"
    assert list(costs(capture)) == ["a", "b"]
    gone = Records(records=[Record(kind=RECORD_KIND, key=name, deleted=True) for name in ("a", "b")])
    await capture.follow(_records(whole, changes, gone))
    assert not capture.on


async def test_what_it_costs_is_told(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it changes, for good; never where there are no rules, and a store that is away hears of it later."""
    monkeypatch.setattr(module, "_EVERY", 0.0)
    away = [True]

    async def rest() -> None:
        if away[0]:
            raise Unavailable("the store is away")

    store = Kept(rest)
    capture = Capture(bus, lambda: 0)
    reporting = asyncio.ensure_future(capture.report("gateway-1", store))
    capture.set_rules([])
    capture.set_rules([rule_of(limit=300)])
    capture.published(WHO, request(*[b"body"] * 3), [1, 2, 3])
    await asyncio.sleep(0.1)
    assert not bus.told, "nothing is taken that is not claimed"
    away[0] = False
    await until(lambda: store.accounts and store.accounts[0].cost.messages)
    reporting.cancel()
    [record] = store.records.values()
    assert (record.kind, record.key, record.transient) == (TAKEN_KIND, "0 gateway-1 r", False)
    assert store.accounts[0].cost == Cost(messages=2, bytes=268, left_out=1)
    assert bus.uids == [1, 2]


async def test_nothing_is_told_without_rules(bus: Bus) -> None:
    """Not even that there are none."""
    store = Kept()
    capture = Capture(bus, lambda: 0)
    reporting = asyncio.ensure_future(capture.report("gateway-1", store))
    capture.set_rules([])
    await asyncio.sleep(0.05)
    reporting.cancel()
    assert store.puts == 0
