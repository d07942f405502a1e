"""Changes that take long to decide leave turns to everything else that the router does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from services.common.errors import InternalError, NotFound
from services.common.topology.records import RecordKey
from services.router import changes as module
from services.router.changes import Changes
from services.router.topology.effects import Effects
from tests.support.others_turns import others_turns


class Ticking:
    """A clock that stands still until a change takes its time."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Store:
    """Writes down what is kept together."""

    def __init__(self) -> None:
        self.puts: list[int] = []

    async def put(self, records: Mapping[RecordKey, Any]) -> None:
        self.puts.append(len(records))


class Lease:
    """Is asked for before each turn."""

    asked = 0

    async def wait_valid(self) -> None:
        self.asked += 1


class House:
    """The writer, and a store and a lease of the test's."""

    def __init__(self, clock: Ticking) -> None:
        self.clock, self.store, self.lease = clock, Store(), Lease()
        self.changes = Changes(None, self.store, None, self.lease, 1)  # type: ignore[arg-type]
        self.order: list[int] = []

    def decide(self, number: int, seconds: float, *, refuse: bool = False) -> Any:
        """A change that takes so long."""

        def decided(effects: Effects) -> int:
            self.clock.now += seconds
            self.order.append(number)
            if refuse:
                raise NotFound("no such thing")
            effects.records[RecordKey("watcher", str(number))] = None  # type: ignore[assignment]
            return number

        return decided

    async def all_of(self, *decisions: Any) -> list[Any]:
        asked = [asyncio.ensure_future(self.changes.decided(each)) for each in decisions]
        return [getattr(each, "answer", each) for each in await asyncio.gather(*asked, return_exceptions=True)]


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    clock = Ticking()
    monkeypatch.setattr(module, "monotonic", clock)
    house = House(clock)
    running = asyncio.ensure_future(house.changes.run())
    yield house
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_what_takes_long_is_decided_in_turns(house: House) -> None:
    """In the order in which it came; what comes meanwhile comes behind it."""
    assert await house.all_of(*[house.decide(number, 0.004) for number in range(10)]) == list(range(10))
    assert house.store.puts == [3, 3, 3, 1]
    assert house.order == list(range(10))
    assert house.lease.asked >= 4


async def test_what_is_quick_is_written_at_once(house: House) -> None:
    """A thousand changes are one write."""
    assert await house.all_of(*[house.decide(number, 0.0) for number in range(1000)]) == list(range(1000))
    assert house.store.puts == [1000]


async def test_others_have_their_turns_also_when_nothing_is_written(house: House) -> None:
    """All that is asked for is refused, so that nobody waits for the store."""
    async with others_turns() as others:
        refused = await house.all_of(*[house.decide(number, 1.0, refuse=True) for number in range(50)])
    assert all(isinstance(each, NotFound) for each in refused)
    assert others.count >= 50


async def test_only_those_that_failed_together_are_carried_out_apart(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, with turns of others in between; what has not been looked at goes on as before."""

    async def nothing() -> None: ...

    def fails(_: Effects) -> None:
        house.clock.now += 0.004
        raise RecursionError("half-way")

    monkeypatch.setattr(house.changes, "restore", nothing)
    monkeypatch.setattr(house.changes, "_tell_all_anew", lambda: None)
    decisions = [house.decide(number, 0.004) for number in range(1, 9)]
    answers = await house.all_of(decisions[0], fails, *decisions[1:])
    assert [type(each) for each in answers] == [int, InternalError, *[int] * 7]
    assert house.store.puts == [1, 3, 3, 1]
    assert house.order == [1, *range(1, 9)]
    assert house.lease.asked >= 6


async def test_a_refusal_rests_on_what_is_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is refused because of what another has just changed hears that when it is written."""
    written = asyncio.Event()
    monkeypatch.setattr(house.store, "put", lambda _: written.wait())
    answers = asyncio.ensure_future(house.all_of(house.decide(1, 0.0), house.decide(2, 0.0, refuse=True)))
    refused = asyncio.ensure_future(house.changes.submit(house.decide(3, 0.0, refuse=True)))
    assert not (await asyncio.wait({answers, refused}, timeout=0.05))[0]
    written.set()
    assert [type(each) for each in await answers] == [int, NotFound]
    with pytest.raises(NotFound):
        await refused
