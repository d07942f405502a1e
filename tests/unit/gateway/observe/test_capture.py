"""Which messages a gateway captures, how much of them, and what it says that it cost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from services.common.capture.cost import RECORD_KIND as TAKEN_KIND
from services.common.capture.cost import Account, Cost, captured
from services.common.capture.rules import LONGEST_SECONDS, RECORD_KIND, Rule
from services.common.errors import Unavailable
from services.common.ledger.place import LedgerPlace
from services.common.message.facts import Attributes, Facts
from services.gateway.observe import capture as module
from services.gateway.observe.capture import Capture
from services.gateway.observe.capture_room import Claims
from services.gateway.vocabulary import Kind, Publish
from services.rpc.ledger_pb2 import RECEIVED, SENT, Captured
from services.rpc.store_pb2 import Record, Records

WHO: Any = SimpleNamespace(virtual_host="/", client="shop", user="alice", name="5.1")
WORK = LedgerPlace("/", queue="work", consumer="tag")


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


class Kept:
    """Records of a store; it rests as often as `rest` does, before and after each call."""

    def __init__(self, rest: Callable[[], Awaitable[None]] | None = None) -> None:
        self.records: dict[str, Record] = {}
        self.puts = 0
        self._rest = rest

    async def put_records(self, puts: Iterable[Record] = (), deletes: Iterable[Record] = ()) -> int:
        await self._pause()
        for record in puts:
            self.puts += 1
            self.records[record.key] = record
        for record in deletes:
            self.records.pop(record.key, None)
        await self._pause()
        return 1

    async def list_records(self, _kinds: Iterable[str]) -> list[Record]:
        await self._pause()
        listed = list(self.records.values())
        await self._pause()
        return listed

    @property
    def accounts(self) -> list[Account]:
        return [Account.model_validate_json(record.value) for record in self.records.values()]

    async def _pause(self) -> None:
        if self._rest:
            await self._rest()


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
        _settle(capture)


def _send(capture: Capture, place: LedgerPlace, uids: Sequence[int], body: bytes = b"body") -> None:
    facts = [_facts("ex", "key")] * len(uids)
    if capture.on:
        capture.sent(WHO, place, uids, (facts, [b"\0\0"] * len(uids), [body] * len(uids)))
        _settle(capture)


def _settle(capture: Capture, instance: str = "gateway-1", store: Kept | None = None) -> None:
    """What waits is claimed, at once."""
    takings = list(capture._all.values())
    settling = Claims(instance, store or Kept()).settle(takings, 0, capture._captures.put)
    with pytest.raises(StopIteration):
        settling.send(None)


def _capture(bus: Bus, *rules: Rule, now: list[int] | None = None) -> Capture:
    clock = now or [0]
    capture = Capture(bus, lambda: clock[0])
    capture.set_rules(rules)
    return capture


def _rule(name: str = "r", **terms: Any) -> Rule:
    return Rule(name=name, made_ms=0, **terms)


def test_off_by_default(bus: Bus) -> None:
    """Without a rule, and without a ledger, nothing is called."""
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
    """A rule does not capture what other clients publish."""
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
    """At any fault of capturing, messages go on."""

    def fail(*_: object) -> bool:
        raise RuntimeError

    monkeypatch.setattr(Rule, "matches", fail)
    _publish(_capture(bus, _rule()), ("ex", "key"))


async def test_a_fault_is_of_one_message(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come after one that cannot be told are captured."""
    capture = Capture(bus, lambda: 0)
    capture.set_rules([_rule()])
    put = bus.put

    def fail_once(_: Captured) -> bool:
        monkeypatch.setattr(bus, "put", put)
        raise RuntimeError

    monkeypatch.setattr(bus, "put", fail_once)
    reporting = asyncio.ensure_future(capture.report("gateway-1", Kept()))
    request = Publish(1, [Kind(_facts("ex", "key"), Attributes())] * 2, [b"\0\0"] * 2, [b"body"] * 2)
    capture.published(WHO, request, [1, 2])
    await _until(lambda: bus.told)
    reporting.cancel()
    assert bus.uids == [2]


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


async def _until(done: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not done():
            await asyncio.sleep(0.005)


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
    capture.set_rules([_rule(limit=300)])
    request = Publish(1, [Kind(_facts("ex", "key"), Attributes())] * 3, [b"\0\0"] * 3, [b"body"] * 3)
    capture.published(WHO, request, [1, 2, 3])
    await asyncio.sleep(0.1)
    assert not bus.told, "nothing is taken that is not claimed"
    away[0] = False
    await _until(lambda: store.accounts and store.accounts[0].cost.messages)
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


def test_the_limit_is_of_all_gateways(bus: Bus) -> None:
    """What one gateway has taken another cannot take, also when the first is gone, or has restarted."""
    store, rule = Kept(), _rule(limit=500)
    for instance, left_out in (("gateway-1", 0), ("gateway-2", 1), ("gateway-3", 2)):
        capture = Capture(bus, lambda: 0)
        capture.set_rules([rule])
        request = Publish(1, [Kind(_facts("ex", "key"), Attributes())] * 2, [b"\0\0"] * 2, [b"body"] * 2)
        capture.published(WHO, request, [1, 2])
        _settle(capture, instance, store)
        assert _costs(capture)["r"].left_out == left_out
        _settle(capture, instance, store)
    [told] = captured([rule], store.accounts, 0)
    assert told.cost == Cost(messages=3, bytes=3 * 134, left_out=3)
    assert len(bus.told) == 3


@pytest.mark.parametrize("seed", range(40))
async def test_gateways_at_once_keep_the_limit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However their claims overtake each other, all gateways together never take more than a rule's limit, but most of
    it, and know what that was.
    """
    monkeypatch.setattr(module, "_PACE", 0.0)
    monkeypatch.setattr(module, "_EVERY", 0.0)
    luck = random.Random(seed)

    async def rest() -> None:
        for _ in range(luck.randrange(4)):
            await asyncio.sleep(0)

    store, bus, rule = Kept(rest), Bus(), _rule(limit=5_000)
    captures = [Capture(bus, lambda: 0) for _ in range(3)]
    reporting = [asyncio.ensure_future(each.report(f"gateway-{n}", store)) for n, each in enumerate(captures)]
    for capture in captures:
        capture.set_rules([rule])
    for number in range(80):
        request = Publish(1, [Kind(_facts("ex", "key"), Attributes())], [b"\0\0"], [bytes(luck.randrange(200))])
        luck.choice(captures).published(WHO, request, [number])
        await rest()
    await _until(lambda: sum(cost.messages + cost.left_out for cost in (each.cost for each in store.accounts)) == 80)
    for each in reporting:
        each.cancel()
    taken = sum(128 + len(each.properties) + len(each.body) for each in bus.told)
    assert rule.limit / 2 < taken <= rule.limit
    [told] = captured([rule], store.accounts, 0)
    assert (told.cost.messages, told.cost.bytes) == (len(bus.told), taken)


def test_accounts_are_forgotten(bus: Bus) -> None:
    """Of rules that ended long ago, of any gateway."""
    store, day = Kept(), LONGEST_SECONDS * 1000
    old = Account(instance="gateway-1", rule="r", made_ms=5)
    store.records[old.key] = Record(kind=TAKEN_KIND, key=old.key, value=old.model_dump_json().encode())
    for now, left in ((5 + day - 1, ["5 gateway-1 r", "9 gateway-2 r"]), (5 + day, ["9 gateway-2 r"])):
        capture = Capture(bus, lambda: 0)
        capture.set_rules([Rule(name="r", made_ms=9)])
        request = Publish(1, [Kind(_facts("ex", "key"), Attributes())], [b"\0\0"], [b"body"])
        capture.published(WHO, request, [1])
        settling = Claims("gateway-2", store).settle(list(capture._all.values()), now, bus.put)
        with pytest.raises(StopIteration):
            settling.send(None)
        assert sorted(store.records) == left


def test_what_waits_is_bounded(bus: Bus) -> None:
    """While the store is away no more waits than the bus takes at a time."""
    capture = Capture(bus, lambda: 0)
    capture.set_rules([_rule(limit=64 << 20, body=256 << 10)])
    request = Publish(1, [Kind(_facts("ex", "key"), Attributes())], [b"\0\0"], [bytes(200_000)])
    for number in range(30):
        capture.published(WHO, request, [number])
    assert _costs(capture)["r"].left_out == 30 - (4 << 20) // 200_130
