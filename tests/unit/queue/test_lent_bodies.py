"""Bodies that a gateway has put into memory which the queue process reads: they are there for whoever wants them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.places import CHUNK
from services.common.clients.shared_memory import HEAD, SharedMemory
from services.common.clock import epoch_ms
from services.queue.links import lent_bodies
from services.rpc import queue_pb2 as pb
from tests.support.programs import until
from tests.support.queue_house import House, RawLink

_BODIES = [b"one", b"", b"three"]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places are wanted back soon."""
    monkeypatch.setattr(lent_bodies, "_SECONDS", 0.05)


class Gateway:
    """A link, and the memory that it shares."""

    def __init__(self, link: RawLink) -> None:
        self.link = link
        self.memory = SharedMemory(CHUNK)
        self.at = HEAD

    async def begin(self, queue_id: int) -> None:
        """Offers the memory; returns when it is read."""
        await self.publish(queue_id, [], memory=self.memory.offer)
        await self.link.until(lambda: any(frame.reads_memory for frame in self.link.frames))

    async def publish(self, queue_id: int, bodies: list[bytes] = _BODIES, **more: Any) -> int:
        """Returns where they are, when the batch is done."""
        place = self.put(bodies)
        await self.say(queue_id, bodies, place=place, **more)
        return place

    def put(self, bodies: list[bytes]) -> int:
        place = self.at
        self.memory.write(place, bodies)
        self.at += sum(map(len, bodies))
        return place

    async def say(
        self,
        queue_id: int,
        bodies: list[bytes],
        *,
        place: int,
        memory: pb.SharedMemory | None = None,
        time_ms: int | None = None,
        **more: Any,
    ) -> None:
        now = epoch_ms() if time_ms is None else time_ms
        uids = None if bodies else []
        raw = self.link.batch(queue_id, bodies, kept=True, uids=uids, time_ms=now, **more)
        batch = pb.PublishBatch.FromString(raw)
        del batch.bodies[:]
        batch.shared_at = place
        batch.shared_sizes.extend(map(len, bodies))
        if memory:
            batch.memory.CopyFrom(memory)
        await self.link.send(publishes=[batch.SerializeToString()])
        await self.link.until(lambda: batch.sequence in self.link.done())

    @property
    def released(self) -> list[int]:
        return [place for frame in self.link.frames for place in frame.released]


@pytest.fixture
async def make(house: House) -> AsyncIterator[Callable[..., Any]]:
    made: list[Gateway] = []

    async def make(queue_id: int, **hello: Any) -> Gateway:
        made.append(Gateway(await house.link(**hello)))
        await made[-1].begin(queue_id)
        return made[-1]

    yield make
    for gateway in made:
        gateway.memory.close()


@pytest.mark.usefixtures("soon")
async def test_named_and_not_read(house: House, make: Callable[..., Any]) -> None:
    """They go back to their gateway by name; the place is released once they are settled, and not before."""
    queue_id = await house.declare("q")
    gateway = await make(queue_id)
    await gateway.link.attach(queue_id)
    place = await gateway.publish(queue_id)
    await gateway.link.until(lambda: len(gateway.link.uids) == 3)
    named = [index for frame in gateway.link.frames for index in frame.deliveries.kept]
    assert (len(named), gateway.link.bodies, gateway.released) == (3, [], [])
    settle = pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=gateway.link.uids)
    await gateway.link.send(settles=[settle])
    await gateway.link.until(lambda: gateway.released == [place])


async def test_what_comes_back(house: House, make: Callable[..., Any]) -> None:
    """It is read then, and sent as it was."""
    queue_id = await house.declare("q")
    gateway = await make(queue_id)
    await gateway.link.attach(queue_id)
    await gateway.publish(queue_id)
    await gateway.link.until(lambda: len(gateway.link.uids) == 3)
    await gateway.link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=gateway.link.uids)])
    await gateway.link.until(lambda: gateway.link.bodies == _BODIES)


async def test_others_get_them(house: House, make: Callable[..., Any]) -> None:
    """Consumers of other gateways, beside bodies that came through the socket."""
    queue_id = await house.declare("q")
    gateway, other = await make(queue_id), await house.link(origin=2000)
    await gateway.publish(queue_id)
    await gateway.link.publish(queue_id, [b"small"])
    await gateway.publish(queue_id, [b"x" * 20_000])
    await other.attach(queue_id)
    await other.until(lambda: other.bodies == [*_BODIES, b"small", b"x" * 20_000])


async def test_get(house: House, make: Callable[..., Any]) -> None:
    """One that is asked for."""
    queue_id = await house.declare("q")
    gateway = await make(queue_id)
    await gateway.publish(queue_id)
    reply = await gateway.link.request(1, get=pb.GetRequest(queue_id=queue_id, settled=True))
    assert list(reply.message.bodies) == _BODIES[:1]


async def test_select(house: House, make: Callable[..., Any]) -> None:
    """Those that management looks at."""
    queue_id = await house.declare("q")
    gateway = await make(queue_id)
    await gateway.publish(queue_id)
    reply = await gateway.link.request(1, select=pb.SelectRequest(queue_id=queue_id, bodies=True))
    assert list(reply.message.bodies) == _BODIES


async def test_dead_letters(house: House, make: Callable[..., Any]) -> None:
    """They are published again, whole."""
    letters = await house.declare("letters")
    await house.declare_exchange("dlx", "letters", "key")
    queue_id = await house.declare("q", dead_letter_exchange="dlx")
    gateway, other = await make(queue_id), await house.link(origin=2000)
    await gateway.link.attach(queue_id)
    await gateway.publish(queue_id)
    await gateway.link.until(lambda: len(gateway.link.uids) == 3)
    await other.attach(letters)
    await gateway.link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.REJECT, uids=gateway.link.uids)])
    await other.until(lambda: other.bodies == _BODIES)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("past", [0, 3_600_000])
async def test_on_disk(house: House, make: Callable[..., Any], past: int, persistent: bool) -> None:
    """Whoever owns the queue next has them: those that are written down then, and those that had to be stored.

    Also where the gateway's clock is another. Gateways share none of the latter: it would only be more work.
    """
    queue_id = await house.declare("q", durable=True)
    gateway = await make(queue_id)
    await gateway.publish(queue_id, persistent=persistent, time_ms=epoch_ms() - past)
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    other = await house.link(origin=2000)
    await asyncio.wait_for(_ready(other, queue_id), 30)
    assert other.bodies == _BODIES


async def _ready(link: RawLink, queue_id: int) -> None:
    while (await link.attach(queue_id)).reason != pb.NONE:
        link.frames.clear()
        await asyncio.sleep(0.05)
    await link.until(lambda: len(link.uids) == 3)


@pytest.mark.usefixtures("soon")
async def test_what_waits_long(house: House, make: Callable[..., Any]) -> None:
    """It is copied, and the place is released, though there is nothing else to say: whoever comes later gets it."""
    queue_id = await house.declare("q")
    gateway = await make(queue_id)
    places = [await gateway.publish(queue_id) for _ in range(3)]
    await gateway.link.until(lambda: sorted(gateway.released) == sorted(places))
    gateway.memory.write(HEAD, [bytes(gateway.at - HEAD)])
    other = await house.link(origin=2000)
    await other.attach(queue_id)
    await other.until(lambda: other.bodies == _BODIES * 3)


async def test_a_gateway_that_is_gone(house: House, make: Callable[..., Any]) -> None:
    """What it had shared is there."""
    queue_id = await house.declare("q")
    gateway = await make(queue_id)
    await gateway.publish(queue_id)
    await gateway.link.close()
    other = await house.link(origin=2000)
    await other.attach(queue_id)
    await other.until(lambda: other.bodies == _BODIES)


@pytest.mark.usefixtures("soon")
async def test_memory_of_a_gateway_that_is_gone(house: House) -> None:
    """It is not kept for one message that waits in it: that is copied."""
    queue_id = await house.declare("q")
    before, gateway = _mapped(), Gateway(await house.link())
    await gateway.begin(queue_id)
    await gateway.publish(queue_id)
    while_it_was_there = _mapped()
    await gateway.link.close()
    gateway.memory.close()
    await until(lambda: _mapped() == before)
    other = await house.link(origin=2000)
    await other.attach(queue_id)
    await other.until(lambda: other.bodies == _BODIES)
    assert while_it_was_there == before + 2


def _mapped() -> int:
    """How often this process has such memory."""
    return Path("/proc/self/maps").read_text().count("hopline-bodies")


async def test_a_memory_that_cannot_be_read(house: House, make: Callable[..., Any]) -> None:
    """It is not said to be; the batch is taken."""
    queue_id = await house.declare("q")
    gateway = Gateway(await house.link())
    offer = gateway.memory.offer
    offer.token = bytes(16)
    await gateway.publish(queue_id, [], memory=offer)
    await gateway.link.publish(queue_id, [b"1"])
    assert not any(frame.reads_memory for frame in gateway.link.frames)
    gateway.memory.close()


@pytest.mark.parametrize("place", [HEAD - 1, HEAD + CHUNK - 2, 1 << 63])
async def test_what_is_not_there(house: House, make: Callable[..., Any], place: int) -> None:
    """A batch is refused whose bodies would lie elsewhere; the stream goes on."""
    queue_id = await house.declare("q")
    gateway = await make(queue_id)
    await gateway.say(queue_id, [b"one"], place=place)
    assert [reason for _, _, reason in gateway.link.refusals()] == [pb.OTHER]
    await gateway.publish(queue_id)
    assert await gateway.link.ready(queue_id, 1) == 3
