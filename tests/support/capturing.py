"""A gateway's capture without a gateway: the bus, the store's accounts, and what is published and sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from services.common.capture.cost import Account, Cost
from services.common.capture.rules import Rule
from services.common.clients.store import Read
from services.common.errors import Overtaken
from services.common.ledger.place import LedgerPlace
from services.common.message.facts import Attributes, Facts
from services.gateway.observe.capture import Capture
from services.gateway.observe.capture_room import Claims
from services.gateway.vocabulary import Kind, Publish
from services.rpc.ledger_pb2 import Captured
from services.rpc.store_pb2 import Record, Unchanged

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
        self._version = 0
        self._rest = rest

    async def put_records(
        self,
        puts: Iterable[Record] = (),
        deletes: Iterable[Record] = (),
        *,
        unchanged: Iterable[Unchanged] = (),
    ) -> int:
        await self._pause()
        if any(self._version > each.version for each in unchanged):
            raise Overtaken("somebody was faster")
        self._version += 1
        for record in puts:
            self.puts += 1
            self.records[record.key] = record
        for record in deletes:
            self.records.pop(record.key, None)
        await self._pause()
        return self._version

    async def read_records(self, *kinds: str) -> Read:
        await self._pause()
        read = Read(list(self.records.values()), [Unchanged(kind=kind, version=self._version) for kind in kinds])
        await self._pause()
        return read

    @property
    def accounts(self) -> list[Account]:
        return [Account.model_validate_json(record.value) for record in self.records.values()]

    async def _pause(self) -> None:
        if self._rest:
            await self._rest()


def request(*bodies: bytes) -> Publish:
    """To one exchange and key."""
    kinds = [Kind(facts("ex", "key"), Attributes())] * len(bodies)
    return Publish(1, kinds, [b"\0\0"] * len(bodies), bodies)


def facts(exchange: str, key: str) -> Facts:
    return Facts("/", exchange, key, "amqp-0-9")


def publish(capture: Capture, *addresses: tuple[str, str], body: bytes = b"body", first: int = 1) -> None:
    kinds = [Kind(facts(*address), Attributes()) for address in addresses]
    request = Publish(1, kinds, [b"\0\0"] * len(kinds), [body] * len(kinds))
    if capture.on:
        capture.published(WHO, request, range(first, first + len(kinds)))
        settle(capture)


def send(capture: Capture, place: LedgerPlace, uids: Sequence[int], body: bytes = b"body") -> None:
    if capture.on:
        capture.sent(WHO, place, uids, ([facts("ex", "key")] * len(uids), [b"\0\0"] * len(uids), [body] * len(uids)))
        settle(capture)


def settle(capture: Capture, instance: str = "gateway-1", store: Kept | None = None) -> None:
    """What waits is claimed, at once."""
    takings = list(capture._all.values())
    settling = Claims(instance, store or Kept()).settle(takings, 0, capture._captures.put)
    with pytest.raises(StopIteration):
        settling.send(None)


def capturing(bus: Bus, *rules: Rule, now: list[int] | None = None) -> Capture:
    clock = now or [0]
    capture = Capture(bus, lambda: clock[0])
    capture.set_rules(rules)
    return capture


def rule_of(name: str = "r", **terms: Any) -> Rule:
    return Rule(name=name, made_ms=0, **terms)


def costs(capture: Capture) -> dict[str, Cost]:
    return {each.rule.name: each.cost for each in capture._all.values()}


def cost_of(capture: Capture) -> Cost:
    return costs(capture)["r"]


async def until(done: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not done():
            await asyncio.sleep(0.005)
