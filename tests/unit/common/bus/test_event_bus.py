"""Against a real NATS server."""

from __future__ import annotations

import asyncio
import time

from nats import connect
from structlog.testing import capture_logs

from services.common.bus.event import Event
from services.common.bus.event_bus import EventBus
from services.common.bus.facts import Gap, VirtualHostCreated
from services.common.bus.subject import ALL
from tests.support.nats_server import NatsServer
from tests.unit.common.bus.conftest import Listener


def _facts(number: int) -> VirtualHostCreated:
    return VirtualHostCreated(virtual_host=f"host-{number}")


async def test_delivery(listener: Listener, bus: EventBus) -> None:
    """An event arrives on its subject, with the process that told it and the time."""
    before = time.time() * 1000
    bus.publish(_facts(1))
    event = (await listener.until(1))[0]
    assert listener.subjects == ["hopline.event.host-1.virtual_host.created"]
    assert (event.version, event.service, event.instance, event.origin) == (1, "router", "router-1", 7)
    assert (event.sequence, event.facts) == (1, _facts(1))
    assert before - 1 <= event.time_ms <= time.time() * 1000


async def test_order(listener: Listener, server: NatsServer) -> None:
    """What one process tells arrives in the order in which it happened, however many events there are."""
    bus = EventBus(server.address, "router", "router-1")
    for number in range(2000):
        bus.publish(_facts(number))
    bus.start()
    events = await listener.until(2000)
    assert [event.sequence for event in events] == list(range(1, 2001))
    assert [event.facts for event in events] == [_facts(number) for number in range(2000)]
    assert bus.missed == 0
    await bus.stop()


async def test_events_from_before_nats_was_there(server: NatsServer, bus: EventBus) -> None:
    """A process starts without NATS, nothing waits, and events that fit the buffer are told when NATS comes."""
    for number in range(10):
        bus.publish(_facts(number))
    await asyncio.sleep(0.3)
    assert not bus._idle.is_set()
    await server.start()
    await _until_told(bus)
    assert bus.missed == 0


async def test_gap_is_told_first(listener: Listener, server: NatsServer) -> None:
    """What there was no room for is told as one range, before the events that follow it."""
    bus = EventBus(server.address, "router", "router-1", capacity=50)
    for number in range(80):
        bus.publish(_facts(number))
    bus.start()
    events = await listener.until(51)
    assert listener.subjects[0] == "hopline.event._.bus.gap"
    assert (events[0].facts, events[0].sequence) == (Gap(first=1, last=30, count=30), 31)
    assert [event.sequence for event in events[1:]] == list(range(31, 81))
    assert bus.missed == 30
    await bus.stop()


async def test_outages_are_accounted_for(listener: Listener, server: NatsServer, bus: EventBus) -> None:
    """Through kill -9 under load, twice: every event was taken or lies in a gap, in order, and none came twice."""
    await _record(server)
    for _ in range(2):
        await _publish_until_heard(bus, listener)
        await _publish_for(bus, 0.3)
        server.kill()
        await _publish_for(bus, 0.5)
        await server.start()
    await _publish_for(bus, 0.2)
    await _until_told(bus)
    events = await _recorded(server)
    gaps = [event.facts for event in events if isinstance(event.facts, Gap)]
    told = [event.sequence for event in events if not isinstance(event.facts, Gap)]
    # The server records what it has taken a moment later, and passes it on at once: what died in between was heard.
    heard = [event.sequence for event in listener.events if not isinstance(event.facts, Gap)]
    accounted = set(told).union(heard, *(range(gap.first, gap.last + 1) for gap in gaps))
    assert told == sorted(set(told))
    assert len(gaps) == 2
    assert accounted == set(range(1, max(told) + 1))
    assert sum(gap.count for gap in gaps) == bus.missed


async def test_silent_server(server: NatsServer, bus: EventBus) -> None:
    """A server that does not answer costs the batch that it was given, and nothing waits for it."""
    await server.start()
    bus.publish(_facts(0))
    await _until_told(bus)
    server.pause()
    bus.publish(_facts(1))
    async with asyncio.timeout(60):
        while not bus.missed:
            await asyncio.sleep(0.05)
    server.resume()
    bus.publish(_facts(2))
    await _until_told(bus)
    assert bus.missed == 1


async def test_no_address() -> None:
    """Where there is no bus, events are forgotten, and none is missed."""
    bus = EventBus("", "router", "router-1")
    bus.start()
    bus.publish(_facts(1))
    await bus.stop()
    assert bus.missed == 0


async def test_last_words(listener: Listener, server: NatsServer) -> None:
    """What happens while a process stops is told before it is gone."""
    bus = EventBus(server.address, "router", "router-1")
    bus.start()
    bus.publish(_facts(0))
    await listener.until(1)
    bus.publish(_facts(1))
    await bus.stop()
    assert (await listener.until(2))[1].facts == _facts(1)


async def test_one_line_for_an_outage(bus: EventBus) -> None:
    """However long NATS is away and however much happens, the log says it once."""
    with capture_logs() as lines:
        async with asyncio.timeout(60):
            while not lines:
                bus.publish(_facts(0))
                await asyncio.sleep(0.07)
        for number in range(60):
            bus.publish(_facts(number))
            await asyncio.sleep(0.07)
    assert [line["event"] for line in lines] == ["event bus is away, messages go on"]


async def _publish_for(bus: EventBus, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        bus.publish(_facts(0))
        await asyncio.sleep(0.001)


async def _publish_until_heard(bus: EventBus, listener: Listener) -> None:
    """A listener comes back later than the bus; until then nobody knows what a server took that is killed again."""
    known = len(listener.events)
    async with asyncio.timeout(60):
        while len(listener.events) == known:
            await _publish_for(bus, 0.01)


async def _until_told(bus: EventBus) -> None:
    async with asyncio.timeout(60):
        await bus._idle.wait()


async def _record(server: NatsServer) -> None:
    """Has the server itself keep what it takes: a listener might come back later than the bus."""
    client = await connect(server.address)
    await client.jetstream().add_stream(name="events", subjects=[ALL])
    await client.close()


async def _recorded(server: NatsServer) -> list[Event]:
    client = await connect(server.address)
    stream = client.jetstream()
    last = (await stream.stream_info("events")).state.last_seq
    events = [Event.from_json((await stream.get_msg("events", seq)).data or b"") for seq in range(1, last + 1)]
    await client.close()
    return events
