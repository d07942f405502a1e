"""Leases while the store is slow, on virtual time: their holder goes on for as long as they certainly hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.common.clients.leases import Leases
from services.common.clock import monotonic
from services.common.errors import Unavailable
from services.rpc import store_pb2 as pb
from tests.simulation.world import World

TTL = 2.0  # seconds
SECOND = 1.0


class SlowStore:
    """Carries out what it is asked at once, and answers `slowness` seconds later; what `loses` says it never hears."""

    def __init__(self) -> None:
        self.slowness = 0.0
        self.loses: Callable[[], bool] = bool
        self.deadline = 0.0
        self.version = 1
        self.held: dict[str, int] = {}
        self.requests: list[pb.KeepAliveRequest] = []

    async def keep_alive(self, request: pb.KeepAliveRequest, timeout: float = 1.0) -> pb.KeepAliveReply:  # noqa: ASYNC109
        try:
            async with asyncio.timeout(timeout):
                if self.loses():
                    await asyncio.get_running_loop().create_future()
                reply = self._carry_out(request)
                await asyncio.sleep(self.slowness)
                return reply
        except TimeoutError:
            raise Unavailable("no answer") from None

    def _carry_out(self, request: pb.KeepAliveRequest) -> pb.KeepAliveReply:
        self.requests.append(request)
        self.deadline = monotonic() + TTL
        for name in request.release:
            self.version += self.held.pop(name, 0)
        for name in request.acquire:
            self.version += self.held.setdefault(name, 1)
        reply = pb.KeepAliveReply(ttl_ms=request.ttl_ms, version=self.version)
        if request.known != self.version:
            reply.leases.extend(pb.Lease(name=name, epoch=1, member=request.member) for name in self.held)
        return reply


class Listener:
    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.valid: list[bool] = []

    def renewed(self, held: dict[str, int], reply: pb.KeepAliveReply) -> None:
        del reply
        self.held = held

    def validity_changed(self, *, valid: bool) -> None:
        self.valid.append(valid)


class House:
    def __init__(self) -> None:
        self.store, self.listener = SlowStore(), Listener()

        async def is_gone(_: str) -> bool:
            return False

        address = "unix:q"
        self.leases = Leases(
            self.store, "store", "me", "queue", address, int(TTL * 1000), self.listener, is_gone=is_gone
        )

    async def passes(self, seconds: float) -> None:
        """Checks throughout that no process acts on a lease that another could have by the store's own clock."""
        until = monotonic() + seconds
        while monotonic() < until:
            await asyncio.sleep(0.01)
            assert not self.leases.check() or monotonic() < self.store.deadline


async def _answers_late() -> None:
    house = House()
    await house.leases.start()
    house.leases.acquire(["partition/1"])
    await house.passes(5 * TTL + 0.3)
    house.store.slowness = SECOND
    await house.passes(10 * TTL)
    assert house.listener.valid == [True]
    house.leases.release({"partition/1": 1})
    house.leases.acquire(["partition/2"])
    await house.passes(2 * SECOND + 0.1)
    assert house.listener.held == {"partition/2": 1}
    assert house.listener.valid == [True]
    await house.leases.stop()


def test_a_store_that_answers_after_a_second() -> None:
    """Half of the time to live for an answer, suddenly and then always: leases hold, and change hands as ever."""
    World(1).run(_answers_late())


async def _loses_one() -> None:
    house = House()
    await house.leases.start()
    await house.passes(TTL)
    lost = iter([True])
    house.store.loses = lambda: next(lost, False)
    await house.passes(3 * TTL)
    assert house.listener.valid == [True]
    await house.leases.stop()


def test_a_question_that_is_lost() -> None:
    """Another one is asked while there is time."""
    World(2).run(_loses_one())


async def _loses_a_change() -> None:
    house = House()
    await house.leases.start()
    await house.passes(0.1)
    lost = iter([True, False, True])
    house.store.loses = lambda: next(lost, False)
    house.leases.acquire(["partition/1"])
    await house.passes(0.3 * TTL)
    assert house.listener.held == {"partition/1": 1}
    house.leases.release({"partition/1": 1})
    await house.passes(0.3 * TTL)
    assert house.listener.held == {}
    await house.leases.stop()


def test_a_change_that_is_lost() -> None:
    """To acquire and to release is asked for again as soon as to renew, not after a whole time to live."""
    World(3).run(_loses_a_change())


async def _falls_silent() -> None:
    house = House()
    await house.leases.start()
    await house.passes(TTL)
    house.store.loses = lambda: True
    await house.passes(2 * TTL)
    assert house.listener.valid == [True, False]
    house.store.loses = bool
    await house.passes(0.7 * TTL)
    assert house.listener.valid == [True, False, True]
    await house.leases.stop()


def test_a_store_that_falls_silent() -> None:
    """Nothing is done for a lease that may have run out; when the store is back so are the leases, within the time."""
    World(4).run(_falls_silent())
