"""How gateways share the room of a capture rule, and what they tell of it."""

from __future__ import annotations

import asyncio
import random

import pytest

from services.common.capture.cost import RECORD_KIND as TAKEN_KIND
from services.common.capture.cost import Account, Cost, captured
from services.common.capture.rules import LONGEST_SECONDS, Rule
from services.gateway.observe import capture as module
from services.gateway.observe.capture import Capture
from services.gateway.observe.capture_room import Claims
from services.rpc.store_pb2 import Record
from tests.support.capturing import WHO, Bus, Kept, cost_of, costs, request, rule_of, settle, until


@pytest.fixture
def bus() -> Bus:
    return Bus()


def test_the_limit_is_of_all_gateways(bus: Bus) -> None:
    """What one gateway has taken another cannot take, also when the first is gone, or has restarted."""
    store, rule = Kept(), rule_of(limit=500)
    for instance, left_out in (("gateway-1", 0), ("gateway-2", 1), ("gateway-3", 2)):
        capture = Capture(bus, lambda: 0)
        capture.set_rules([rule])
        capture.published(WHO, request(*[b"body"] * 2), [1, 2])
        settle(capture, instance, store)
        assert costs(capture)["r"].left_out == left_out
        settle(capture, instance, store)
    [told] = captured([rule], store.accounts, 0)
    assert told.cost == Cost(messages=3, bytes=3 * 134, left_out=3)
    assert len(bus.told) == 3


@pytest.mark.parametrize("seed", range(40))
async def test_gateways_at_once_keep_the_limit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However their claims overtake each other, all gateways together take all of a rule's limit that a message fits
    in, never more, and know what that was.
    """
    monkeypatch.setattr(module, "_PACE", 0.0)
    monkeypatch.setattr(module, "_EVERY", 0.0)
    luck = random.Random(seed)

    async def rest() -> None:
        for _ in range(luck.randrange(4)):
            await asyncio.sleep(0)

    store, bus, rule = Kept(rest), Bus(), rule_of(limit=5_000)
    captures = [Capture(bus, lambda: 0) for _ in range(3)]
    reporting = [asyncio.ensure_future(each.report(f"gateway-{n}", store)) for n, each in enumerate(captures)]
    for capture in captures:
        capture.set_rules([rule])
    for number in range(80):
        luck.choice(captures).published(WHO, request(bytes(luck.randrange(200))), [number])
        await rest()
    await until(lambda: sum(cost.messages + cost.left_out for cost in (each.cost for each in store.accounts)) == 80)
    for each in reporting:
        each.cancel()
    taken = sum(128 + len(each.properties) + len(each.body) for each in bus.told)
    assert rule.limit - (128 + 2 + 200) < taken <= rule.limit
    [told] = captured([rule], store.accounts, 0)
    assert (told.cost.messages, told.cost.bytes) == (len(bus.told), taken)


async def test_gateways_that_want_all_of_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each of several gateways wants all that a rule may have, in one claim, the rule gets it."""
    monkeypatch.setattr(module, "_PACE", 0.0)
    store, bus, rule = Kept(lambda: asyncio.sleep(0)), Bus(), rule_of(limit=1_340)
    captures = [Capture(bus, lambda: 0) for _ in range(3)]
    for capture in captures:
        capture.set_rules([rule])
        capture.published(WHO, request(*[b"body"] * 10), range(10))
    async with asyncio.TaskGroup() as tasks:
        reporting = [tasks.create_task(each.report(f"gateway-{n}", store)) for n, each in enumerate(captures)]
        await until(lambda: all(cost.messages + cost.left_out == 10 for cost in map(cost_of, captures)))
        for each in reporting:
            each.cancel()
    assert len(bus.told) == 10


def test_accounts_are_forgotten(bus: Bus) -> None:
    """Of rules that ended long ago, of any gateway."""
    store, day = Kept(), LONGEST_SECONDS * 1000
    old = Account(instance="gateway-1", rule="r", made_ms=5)
    store.records[old.key] = Record(kind=TAKEN_KIND, key=old.key, value=old.model_dump_json().encode())
    for now, left in ((5 + day - 1, ["5 gateway-1 r", "9 gateway-2 r"]), (5 + day, ["9 gateway-2 r"])):
        capture = Capture(bus, lambda: 0)
        capture.set_rules([Rule(name="r", made_ms=9)])
        capture.published(WHO, request(b"body"), [1])
        settling = Claims("gateway-2", store).settle(list(capture._all.values()), now, bus.put)
        with pytest.raises(StopIteration):
            settling.send(None)
        assert sorted(store.records) == left


def test_what_waits_is_bounded(bus: Bus) -> None:
    """While the store is away no more waits than the bus takes at a time."""
    capture = Capture(bus, lambda: 0)
    capture.set_rules([rule_of(limit=64 << 20, body=256 << 10)])
    for number in range(30):
        capture.published(WHO, request(bytes(200_000)), [number])
    assert costs(capture)["r"].left_out == 30 - (4 << 20) // 200_130
