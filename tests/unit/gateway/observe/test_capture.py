"""Which messages a gateway captures, how much of them, and what it says that it cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from services.common.capture.cost import Account, Cost
from services.common.capture.rules import RECORD_KIND, Rule
from services.common.ledger.place import Place
from services.common.message.facts import Attributes, Facts
from services.gateway.observe import capture as module
from services.gateway.observe.capture import Capture
from services.gateway.vocabulary import Kind, Publish
from services.rpc.ledger_pb2 import RECEIVED, SENT, Captured
from services.rpc.store_pb2 import Record, Records

WHO: Any = SimpleNamespace(virtual_host="/", client="shop", user="alice", name="5.1")
WORK = Place("/", queue="work", consumer="tag")


class Bus:
    """Takes what it is told, while it has room."""

    on = True

    def __init__(self) -> None:
        self.told: list[Captured] = []
        self.room = 1 << 30

    def put(self, captured: Captured) -> bool:
        if len(self.told) >= self.room:
            return False
        self.told.append(captured)
        return True

    @property
    def uids(self) -> list[int]:
        return [each.uid for each in self.told]


@pytest.fixture
def bus() -> Bus:
    return Bus()


def _facts(exchange: str, key: str) -> Facts:
    return Facts("/", exchange, key, "amqp-0-9")


def _publish(capture: Capture, *addresses: tuple[str, str], body: bytes = b"body", first: int = 1) -> None:
    kinds = [Kind(_facts(*address), Attributes()) for address in addresses]
    request = Publish(1, kinds, [b"\0\0"] * len(kinds), [body] * len(kinds))
    if capture.on:
        capture.published(WHO, request, range(first, first + len(kinds)))


def _send(capture: Capture, place: Place, uids: Sequence[int], body: bytes = b"body") -> None:
    facts = [_facts("ex", "key")] * len(uids)
    if capture.on:
        capture.sent(WHO, place, uids, (facts, [b"\0\0"] * len(uids), [body] * len(uids)))


def _capture(bus: Bus, *rules: Rule, now: list[int] | None = None) -> Capture:
    clock = now or [0]
    capture = Capture(bus, lambda: clock[0])
    capture.set_rules(rules)
    return capture


def _rule(name: str = "r", **terms: Any) -> Rule:
    return Rule(name=name, made_ms=0, **terms)


def test_off_by_default(bus: Bus) -> None:
    """Without a rule, and where there is no ledger, nobody is asked anything."""
    assert not _capture(bus).on
    without = Capture()
    without.set_rules([_rule()])
    assert not without.on


def test_publishes(bus: Bus) -> None:
    """Of messages of one read those are captured whose exchange and key fit, with all that is known of them."""
    capture = _capture(bus, _rule(exchange="ex", key="eu.*", client="shop"))
    _publish(capture, ("ex", "eu.1"), ("ex", "us"), ("other", "eu.1"), ("ex", "eu.2"))
    assert bus.uids == [1, 4]
    [first, _] = bus.told
    assert (first.stage, first.rule, first.format) == (RECEIVED, "r", "amqp-0-9")
    assert (first.properties, first.body, first.size) == (b"\0\0", b"body", 4)
    assert (first.place.exchange, first.place.routing_key, first.place.queue) == ("ex", "eu.1", "")
    assert (first.place.connection, first.place.client) == ("5.1", "shop")


@pytest.mark.parametrize("client", ["bob", "5.2"])
def test_of_others(bus: Bus, client: str) -> None:
    """What somebody else publishes is none of a rule's."""
    _publish(_capture(bus, _rule(client=client)), ("ex", "eu.1"))
    assert not bus.told


def test_deliveries(bus: Bus) -> None:
    """A rule with a queue is about what is sent from it, one without about what is published."""
    capture = _capture(bus, _rule(queue="wo*"))
    _publish(capture, ("ex", "key"))
    _send(capture, WORK, [1, 2])
    _send(capture, WORK._replace(queue="other"), [3])
    assert bus.uids == [1, 2]
    assert (bus.told[0].stage, bus.told[0].place.queue, bus.told[0].place.consumer) == (SENT, "work", "tag")
    capture.set_rules([_rule()])
    _send(capture, WORK, [4])
    assert bus.uids == [1, 2]


def test_bodies_are_cut(bus: Bus) -> None:
    """Of a body its beginning is kept, and how long it was."""
    _publish(_capture(bus, _rule(body=3)), ("ex", "key"), body=b"123456")
    assert (bus.told[0].body, bus.told[0].size) == (b"123", 6)


def test_the_limit(bus: Bus) -> None:
    """What a rule has no room for is left out and counted, and the next one may take it."""
    small, large = _rule("a", limit=1000), _rule("b", key="k2")
    capture = _capture(bus, small, large)
    for number in range(3):
        _publish(capture, ("ex", "k1"), ("ex", "k2"), body=bytes(350), first=2 * number)
    assert [(each.uid, each.rule) for each in bus.told] == [(0, "a"), (1, "a"), (3, "b"), (5, "b")]
    costs = _costs(capture)
    assert costs["a"] == Cost(messages=2, bytes=2 * (350 + 2 + 128), left_out=2)
    assert (costs["b"].messages, costs["b"].left_out) == (2, 0)
    assert costs["a"].bytes <= small.limit


def test_no_room_on_the_bus(bus: Bus) -> None:
    """What the bus has no room for is left out and counted, too."""
    bus.room = 1
    capture = _capture(bus, _rule())
    _publish(capture, ("ex", "key"), ("ex", "key"), ("ex", "key"))
    assert (_costs(capture)["r"].messages, _costs(capture)["r"].left_out) == (1, 2)


def test_it_ends(bus: Bus) -> None:
    """When the time of the last rule is over nothing is captured any more, and then nothing is asked."""
    now = [0]
    capture = _capture(bus, _rule("a", seconds=1), _rule("b", seconds=2, key="k2"), now=now)
    now[0] = 1_500
    _publish(capture, ("ex", "k1"), ("ex", "k2"))
    assert bus.uids == [2]
    assert capture.on
    now[0] = 2_000
    _publish(capture, ("ex", "k2"))
    assert (bus.uids, capture.on) == ([2], False)


def test_a_fault_is_not_the_client_s(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with capturing, messages go on."""

    def fail(_: Captured) -> bool:
        raise RuntimeError

    monkeypatch.setattr(bus, "put", fail)
    _publish(_capture(bus, _rule()), ("ex", "key"))


def _costs(capture: Capture) -> dict[str, Cost]:
    return {each.rule.name: each.cost for each in capture._all.values()}


async def _records(*batches: Records) -> AsyncIterator[Records]:
    for batch in batches:
        yield batch


def _record(name: str, **terms: Any) -> Record:
    return Record(kind=RECORD_KIND, key=name, value=_rule(name, **terms).to_json())


async def test_rules_come_and_go(bus: Bus) -> None:
    """Rules on record are followed: all at once, changes, and what is not understood is passed over."""
    capture = Capture(bus, lambda: 0)
    await capture.follow(_records(Records(records=[_record("a", key="k1")], snapshot=True, last=True)))
    assert (capture.on, list(_costs(capture))) == (True, ["a"])
    _publish(capture, ("ex", "k1"))
    changes = Records(records=[_record("b"), Record(kind=RECORD_KIND, key="c", value=b"{}")])
    whole = Records(records=[_record("a", key="k1")], snapshot=True, last=True)
    await capture.follow(_records(whole, changes))
    assert _costs(capture)["a"].messages == 1, "a rule that stays goes on counting"
    assert list(_costs(capture)) == ["a", "b"]
    gone = Records(records=[Record(kind=RECORD_KIND, key=name, deleted=True) for name in ("a", "b")])
    await capture.follow(_records(whole, changes, gone))
    assert not capture.on


async def test_what_it_costs_is_told(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it changes, and again after a while, for a store that was started anew; never where there are no rules."""
    monkeypatch.setattr(module, "_EVERY", 0.0)
    monkeypatch.setattr(module, "_AGAIN", 0.01)
    told: list[Record] = []

    async def put(records: Sequence[Record], _deletes: Sequence[Record]) -> int:
        told.extend(records)
        return 1

    capture = Capture(bus, lambda: 0)
    reporting = asyncio.ensure_future(capture.report("gateway-1", put))
    capture.set_rules([])
    await asyncio.sleep(0.03)
    assert not told
    capture.set_rules([_rule()])
    _publish(capture, ("ex", "key"))
    async with asyncio.timeout(5):
        while len(told) < 3:
            await asyncio.sleep(0.01)
    reporting.cancel()
    account = Account.model_validate_json(told[-1].value)
    assert (told[-1].key, told[-1].transient, account.costs["0 r"].messages) == ("gateway-1", True, 1)
