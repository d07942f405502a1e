"""A receiver of AMQP 1.0 that gives much credit, shuts its session's window, and says nothing more."""

from __future__ import annotations

import asyncio

from services.common.message.amqp_1_0.composite import Composite
from services.gateway.protocols.amqp_1_0 import frames, security
from services.gateway.protocols.amqp_1_0.connection import AMQP_HEADER, SASL_HEADER
from services.gateway.protocols.amqp_1_0.performatives import Begin, Flow, Open
from tests.support.amqp_1_0_playbook import PLAIN, framed, receiving
from tests.support.broker_house import BrokerHouse

_MESSAGES, _SIZE = 600, 40_000


async def test_what_it_does_not_take_stays_in_the_queue(broker: BrokerHouse, name: str) -> None:
    """Its gateway keeps a few megabytes for it, and not all that its credit is for; the rest is for others."""
    publisher = await broker.connect(0)
    await publisher.declare(name)
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports[1])
    writer.write(SASL_HEADER + framed(0, security.Init("PLAIN", PLAIN), kind=frames.SASL))
    said: tuple[Composite, ...] = (
        Open("slow"),
        Begin(None, 0, 1, 1),
        receiving(name),
        Flow(0, 1, 0, 1, 0, 0, 1_000_000),
    )
    writer.write(AMQP_HEADER + b"".join(framed(0, each) for each in said))
    async with asyncio.timeout(10):
        while name.encode() not in await reader.read(1 << 16):
            """Until the attach has its answer."""
    for _ in range(_MESSAGES):
        publisher.publish(bytes(_SIZE), name)
    left = -1
    for _ in range(20):
        await asyncio.sleep(0.1)
        before, left = left, (await publisher.declare(name, passive=True)).message_count
    assert left == before  # nothing moves any more
    assert left > _MESSAGES // 2
    writer.close()
    async with asyncio.timeout(10):
        while (await publisher.declare(name, passive=True)).message_count < _MESSAGES:
            await asyncio.sleep(0.05)
