"""Leases by a clock that the test holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.common.clients.leases import Leases
from services.common.errors import Unavailable
from services.rpc import store_pb2 as pb
from tests.support.store_house import House as StoreHouse


class FakeStore:
    """Grants every request; `away` makes it fail."""

    def __init__(self) -> None:
        self.away = False
        self.delay: asyncio.Event | None = None  # what is asked now is answered then
        self.delayed = self.asked = 0
        self.most_ms = 600_000
        self.held: dict[str, int] = {}
        self.epoch = 1  # of what is acquired
        self.version = 0  # 0: of a store that tells everything again and again
        self.requests: list[pb.KeepAliveRequest] = []

    async def keep_alive(self, request: pb.KeepAliveRequest, timeout: float = 1.0) -> pb.KeepAliveReply:  # noqa: ASYNC109
        await asyncio.sleep(0)
        self.asked += 1
        if delay := self.delay:
            self.delayed += 1
            await delay.wait()
        if self.away:
            raise Unavailable("away")
        self.requests.append(request)
        for name in request.release:
            self.held.pop(name, None)
        self.held.update(dict.fromkeys(request.acquire, self.epoch))
        reply = pb.KeepAliveReply(ttl_ms=min(request.ttl_ms, self.most_ms), version=self.version)
        if not self.version or request.known != self.version:
            reply.leases.extend(
                pb.Lease(name=name, epoch=epoch, member=request.member) for name, epoch in self.held.items()
            )
        return reply


class Listener:
    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.ever: set[tuple[str, int]] = set()
        self.valid: list[bool] = []
        self.renewed_while_invalid = 0

    def renewed(self, held: dict[str, int], reply: pb.KeepAliveReply) -> None:
        self.renewed_while_invalid += not (self.valid and self.valid[-1])
        self.held = held
        self.ever |= held.items()

    def validity_changed(self, *, valid: bool) -> None:
        self.valid.append(valid)


class Wanting(Listener):
    """Wants one lease, for ever."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.leases: Leases = None  # type: ignore[assignment]
        self._name = name

    def renewed(self, held: dict[str, int], reply: pb.KeepAliveReply) -> None:
        super().renewed(held, reply)
        if not held:
            self.leases.acquire([self._name])


class House:
    def __init__(self, *, gone: bool = False, ttl_ms: int = 200) -> None:
        self.now = 100.0
        self.store, self.listener = FakeStore(), Listener()

        async def is_gone(_: str) -> bool:
            return gone

        self.leases = Leases(
            self.store, "unix:store", "me", "queue", "unix:q", ttl_ms, self.listener, lambda: self.now, is_gone
        )

    async def renewed(self) -> None:
        """Returns when a renewal was answered."""
        answered = len(self.store.requests)
        self.leases.refresh()
        await until(lambda: len(self.store.requests) > answered + 1)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


async def test_acquire_and_release_at_once() -> None:
    """What is asked for is asked of the store without waiting for the next renewal; leaving tells it too."""
    house = House()
    await house.leases.start()
    house.leases.acquire(["partition/1", "partition/2"])
    await until(lambda: house.listener.held == {"partition/1": 1, "partition/2": 1})
    house.leases.release({"partition/1": 1})
    await until(lambda: house.listener.held == {"partition/2": 1})
    await house.leases.stop()
    assert house.store.requests[-1].leaving


async def test_an_epoch_that_ended_does_not_begin_again() -> None:
    """A store that died before the end of a lease was on disk gives it back in the epoch that was lost: it is given
    back before any process acts on it, and held from the next epoch on; what others hold is told all the same.
    """
    house = House()
    await house.leases.start()
    house.leases.acquire(["partition/1", "partition/2"])
    await until(lambda: house.listener.held == {"partition/1": 1, "partition/2": 1})
    del house.store.held["partition/1"]
    house.leases.refresh()
    await until(lambda: house.listener.held == {"partition/2": 1})
    house.listener.ever.clear()
    house.store.held["partition/1"] = 1
    house.leases.refresh()
    await until(lambda: any("partition/1" in request.release for request in house.store.requests))
    released = next(request for request in house.store.requests if request.release)
    assert dict(zip(released.release, released.release_epochs, strict=True)) == {"partition/1": 1}
    house.store.epoch = 2
    house.leases.acquire(["partition/1"])
    await until(lambda: house.listener.held.get("partition/1") == 2)
    assert ("partition/1", 1) not in house.listener.ever
    await house.leases.stop()


async def test_no_epoch_that_was_ever_told() -> None:
    """A request for a lease names the highest epoch that answers and tables have shown of it: the store may
    have forgotten.
    """
    house = House()
    house.store.held = {"partition/1": 7}
    await house.leases.start()
    house.store.held = {}
    house.leases.heard_of([("partition/2", 5), ("partition/1", 3)])
    house.leases.acquire(["partition/1", "partition/2", "partition/3"])
    await until(lambda: any(request.acquire for request in house.store.requests))
    asked = next(request for request in house.store.requests if request.acquire)
    above = dict(zip(asked.acquire, asked.acquire_above, strict=True))
    assert above == {"partition/1": 7, "partition/2": 5, "partition/3": 0}
    await house.leases.stop()


class _Engine:
    """A store without its wire."""

    def __init__(self, house: StoreHouse) -> None:
        self.house, self.asked = house, 0

    async def keep_alive(self, request: pb.KeepAliveRequest, timeout: float = 1.0) -> pb.KeepAliveReply:  # noqa: ASYNC109
        self.asked += 1
        copy = pb.KeepAliveRequest.FromString(request.SerializeToString())
        async with asyncio.timeout(timeout):
            return await self.house.engine.leases.keep_alive(copy)


async def test_a_store_that_has_forgotten_everything(tmp_path: Path) -> None:
    """It is asked a few times, and not once for each epoch that was before; then the lease is held in a new one."""
    house = StoreHouse("memory", tmp_path)
    await house.start()
    await house.acquire("partition/1", member="other", acquire_above=[200])
    await house.acquire(release=["partition/1"], member="other")
    engine, listener = _Engine(house), Wanting("partition/1")
    listener.leases = Leases(engine, "unix:store", "me", "queue", "unix:q", 60_000, listener)
    await listener.leases.start()
    await until(lambda: listener.held)
    await house.stop()
    house.provider = None
    await house.start()
    asked = engine.asked
    listener.leases.refresh()
    await until(lambda: listener.held != {"partition/1": 202})
    await until(lambda: listener.held)
    assert listener.held == {"partition/1": 203}
    assert engine.asked - asked < 5
    await listener.leases.stop()
    await house.stop()


async def test_what_is_not_told_again_is_still_held() -> None:
    """A renewal that is answered with a version which is known leaves everything as it was."""
    house = House()
    house.store.version = 7
    house.store.held = {"partition/1": 1}
    await house.leases.start()
    await until(lambda: len(house.store.requests) > 3)
    assert [request.known for request in house.store.requests[:3]] == [0, 7, 7]
    assert house.listener.held == {"partition/1": 1}
    await house.leases.stop()


async def test_granted_is_less_than_asked_for() -> None:
    """A holder that asks for a long time to live renews within the short one that it is given."""
    house = House(ttl_ms=600_000)
    house.store.most_ms = 100
    await house.leases.start()
    await until(lambda: len(house.store.requests) > 3)
    await house.leases.stop()


async def test_less_is_granted_than_before() -> None:
    """A store that comes back with a shorter time to live expires members that are silent for that: no lease counts for
    longer, also one that was granted for longer before.
    """
    house = House(ttl_ms=10_000)
    await house.leases.start()
    house.store.most_ms = 1000
    house.leases.refresh()
    await until(lambda: len(house.store.requests) >= 2)
    await asyncio.sleep(0.01)
    house.now += 0.9
    assert house.leases.check()
    house.now += 0.2
    assert not house.leases.check()
    await house.leases.stop()


@pytest.mark.parametrize(
    ("answers", "end"),
    [
        ([(1, 1000), (0, 1000)], 2.0),  # the older question is answered last: nothing is shorter for it
        ([(1, 10_000), (0, 1000)], 2.0),  # the store that grants less was the last one that was asked
        ([(0, 10_000), (1, 1000)], 2.0),
        ([(0, 1000), (1, 10_000)], 11.0),
    ],
)
async def test_answers_out_of_order(answers: list[tuple[int, int]], end: float) -> None:
    """Leases hold from the latest question that was answered, for as long as the latest store grants."""
    house = House(ttl_ms=10_000)
    started = house.now = 200.0
    house.now += 1.5
    for asked, ttl_ms in answers:
        house.leases._answered(started + asked, pb.KeepAliveRequest(), pb.KeepAliveReply(ttl_ms=ttl_ms))
    house.now = started + end - 0.01
    assert house.leases.check()
    house.now = started + end
    assert not house.leases.check()
    await house.leases.stop()


async def test_loads_that_cannot_be_told() -> None:
    """Leases are renewed without them."""
    house = House()
    await house.leases.start()
    house.leases.loads = lambda: [pb.LeaseLoad(messages=-1)]
    asked = len(house.store.requests)
    await until(lambda: len(house.store.requests) > asked + 2)
    await house.leases.stop()


@pytest.mark.parametrize("address", ["unix:q", ""])
async def test_a_fault_of_a_renewal(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """However a request ends, the next one is made: also by a member that joins, and makes no other."""
    house = House(ttl_ms=60_000)
    house.leases._address = address
    await house.leases.start()
    keep_alive, asked = house.store.keep_alive, len(house.store.requests)

    async def odd(_request: pb.KeepAliveRequest, timeout: float = 1.0) -> pb.KeepAliveReply:  # noqa: ASYNC109
        monkeypatch.setattr(house.store, "keep_alive", keep_alive)
        raise RuntimeError("odd")

    monkeypatch.setattr(house.store, "keep_alive", odd)
    house.leases.refresh()
    async with asyncio.timeout(2):
        await until(lambda: len(house.store.requests) > asked)
    await house.leases.stop()


async def test_runs_out() -> None:
    """Leases that could not be renewed are not valid after their time, and are again when they were renewed."""
    house = House()
    await house.leases.start()
    assert house.leases.check()
    house.store.away = True
    house.now += 0.3
    assert not house.leases.check()
    house.store.away = False
    await until(lambda: house.listener.valid == [True, False, True])
    await house.leases.stop()


async def test_a_store_that_takes_its_time() -> None:
    """A lease of two seconds is held, and valid, while the store takes more than one to answer, and after it has."""
    house = House(ttl_ms=2000)
    await house.leases.start()
    house.leases.acquire(["partition/1"])
    await until(lambda: house.listener.held)
    delay = house.store.delay = asyncio.Event()
    house.leases.refresh()
    await until(lambda: house.store.delayed)
    asked, house.now = len(house.store.requests), house.now + 1.2
    assert house.leases.check()
    house.store.delay = None
    delay.set()
    await until(lambda: len(house.store.requests) > asked)
    assert house.leases.check()
    assert (house.listener.held, house.listener.valid) == ({"partition/1": 1}, [True])
    await house.leases.stop()


async def test_what_is_logged() -> None:
    """A wait for the store is logged once at the start; later, that it does not answer, once until it does for a while.

    Then how often that was.
    """
    house = House()
    house.store.away = True
    with capture_logs() as told:
        starting = asyncio.create_task(house.leases.start())
        await until(lambda: house.store.asked > 2)
        house.store.away = False
        await starting
        assert [line["log_level"] for line in told] == ["info"]
        house.store.away, asked = True, house.store.asked
        await until(lambda: house.store.asked > asked + 2)
        house.store.away = False
        await house.renewed()
        house.store.away, asked = True, house.store.asked
        await until(lambda: house.store.asked > asked + 2)
        house.store.away = False
        await house.renewed()
        assert [line["log_level"] for line in told] == ["info", "warning"]
        assert "store" in told[-1]["do"]
        house.now += 10.0
        await house.renewed()
    assert [line["log_level"] for line in told] == ["info", "warning", "info"]
    assert (told[-1]["late"], told[-1]["role"]) == (2, told[1]["role"])
    await house.leases.stop()


async def test_store_that_is_gone() -> None:
    """While the store's address is closed no lease can be granted to others: leases stay valid."""
    house = House(gone=True)
    await house.leases.start()
    house.store.away = True
    for _ in range(5):
        house.now += 0.1
        await asyncio.sleep(0.12)
    assert house.leases.check()
    await house.leases.stop()
    assert house.listener.valid == [True]


async def test_an_answer_from_before_a_suspend() -> None:
    """What was asked before the machine slept and is answered after it grants nothing: it is asked for again."""
    house = House()
    await house.leases.start()
    house.store.delay = asyncio.Event()
    house.leases.acquire(["partition/1"])
    await until(lambda: house.store.delayed)
    house.now += 3600
    house.store.delay.set()
    house.store.delay = None
    await until(lambda: house.listener.valid == [True, False, True])
    assert house.listener.renewed_while_invalid == 0
    assert house.leases.check()
    await house.leases.stop()
