"""Traffic of which no two messages in a row are alike: keys, priorities, persistence, expirations, transactions,
confirms, rejects, dead letters, gets, full queues, and queues without consumers.
"""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import TYPE_CHECKING, Any

import pika

from tests.support.chaos.wire import Wire
from tests.support.fates.clients import Client, Consumer, Getter, Publisher, Transactor
from tests.support.fates.truth import Kind, Queue, Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    from tests.support.interop_address import BrokerAddress

KEYS = 20
STOP_SECONDS = 20.0
_LAST_SECONDS = 2.5  # by then what expires has expired


def queues_of(prefix: str, sets: int) -> dict[str, Queue]:
    """As many sets of queues, so that they are in many partitions."""
    found = [queue for number in range(sets) for queue in _set(f"{prefix}-{number}")]
    return {queue.name: queue for queue in found}


def _set(prefix: str) -> list[Queue]:
    def dead_to(name: str) -> dict[str, object]:
        return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{prefix}-{name}"}

    return [
        Queue(f"{prefix}-work", dead_to("work-dead"), "consumer"),
        Queue(f"{prefix}-work-dead", consumed="getter"),
        Queue(f"{prefix}-prio", {"x-max-priority": 5}, "consumer"),
        Queue(f"{prefix}-plain", consumed="consumer"),
        Queue(f"{prefix}-idle"),
        Queue(f"{prefix}-brief", dead_to("brief-dead")),
        Queue(f"{prefix}-brief-dead"),
        Queue(f"{prefix}-fleeting"),
        Queue(f"{prefix}-full", {"x-max-length": 20, "x-overflow": "reject-publish"}),
        Queue(f"{prefix}-ring", {"x-max-length": 20}),
    ]


def kinds_of(prefix: str, sets: int) -> list[Kind]:
    """What is published, in turn."""
    return [kind for turn in range(KEYS) for number in range(sets) for kind in _kinds(prefix, number, turn)]


def _kinds(prefix: str, number: int, turn: int) -> list[Kind]:
    own, persistent = f"{prefix}-{number}", turn % 2 == 0

    def to(name: str, **facts: Any) -> Kind:
        return Kind("", f"{own}-{name}", (f"{own}-{name}",), persistent, **facts)

    return [
        *(to(name) for name in ("work", "plain", "idle", "full", "ring")),
        to("prio", priority=turn % 6),
        *(to(name, expiration=200 + 100 * turn) for name in ("brief", "fleeting")),
        Kind(f"{prefix}-topic", f"{number}.{turn}", (f"{own}-plain", f"{own}-idle"), persistent),
        Kind("", f"{prefix}-nowhere", (), persistent, mandatory=turn % 4 < 2),
    ]


class Traffic:
    """Begins with `start`; when `stop` returns, no client publishes or consumes any more."""

    def __init__(self, prefix: str, door: Callable[[], BrokerAddress], rate: float, sets: int = 3) -> None:
        """`rate` is how many messages a second are published, a twentieth of them in transactions. `door` is where
        clients get in.
        """
        self.prefix = prefix
        self.truth = Truth(queues_of(prefix, sets))
        self._kinds = kinds_of(prefix, sets)
        self._sets = sets
        self._door = door
        self._rate = rate
        self._publishers: list[Client] = []
        self._consumers: list[Client] = []

    async def start(self) -> None:
        """Declares the queues, consumes, then publishes."""
        wire = await Wire.open(self._door())
        channel, topic = wire.channel, f"{self.prefix}-topic"
        await wire.answer(lambda done: channel.exchange_declare(topic, "topic", durable=True, callback=done))
        for queue in self.truth.queues.values():
            await wire.answer(
                lambda done, queue=queue: channel.queue_declare(
                    queue.name, durable=True, arguments=queue.arguments, callback=done
                )
            )
        for number in range(self._sets):
            for name in ("plain", "idle"):
                await wire.answer(
                    lambda done, queue=f"{self.prefix}-{number}-{name}", key=f"{number}.#": channel.queue_bind(
                        queue, topic, key, callback=done
                    )
                )
        await wire.close()
        self._start_clients()

    async def stop(self) -> float:
        """Publishers first; consumers have some time for what they have not got yet. Gives when the first stopped."""
        stopped = time.time()
        async with asyncio.timeout(STOP_SECONDS):
            await asyncio.gather(*(client.stop() for client in self._publishers))
            await asyncio.sleep(_LAST_SECONDS)
            await asyncio.gather(*(client.stop() for client in self._consumers))
        return stopped

    def _start_clients(self) -> None:
        door, truth, prefix = self._door, self.truth, self.prefix
        for name in ("work", "prio", "plain"):
            queues = [f"{prefix}-{number}-{name}" for number in range(self._sets)]
            random = Random(f"{prefix}{name}")
            self._consumers.append(Consumer(f"{prefix}-{name}-consumer", door, truth, queues, random))
        dead = [f"{prefix}-{number}-work-dead" for number in range(self._sets)]
        self._consumers.append(Getter(f"{prefix}-getter", door, truth, dead))
        rate = self._rate
        self._publishers.append(Publisher(f"{prefix}-publisher", door, truth, self._kinds, rate * 0.95))
        simple = [kind for kind in self._kinds if kind.targets and not kind.targets[0].endswith(("-full", "-ring"))]
        self._publishers.append(Transactor(f"{prefix}-transactor", door, truth, simple, rate * 0.05))


async def count_left(truth: Truth, address: BrokerAddress) -> None:
    """Tells the truth what is in the queues: takes all of it, and gives it back by going away."""
    wire = await Wire.open(address)
    channel, found, total = wire.channel, [], 0
    for queue in truth.queues:
        declared = await wire.answer(
            lambda done, queue=queue: channel.queue_declare(queue, passive=True, callback=done)
        )
        total += declared.method.message_count
    for queue in truth.queues:

        def take(_channel: Any, _method: Any, _properties: Any, body: bytes, queue: str = queue) -> None:
            found.append((body.decode(), queue))

        channel.basic_consume(queue, take)
    await _all_come(found, total)
    for copy in found:
        truth.found(copy)
    await wire.close()


async def _all_come(found: Sized, total: int) -> None:
    """Returns when so many are there. Of an hour that is many: bounded is for how long none comes."""
    while (before := len(found)) < total:
        async with asyncio.timeout(STOP_SECONDS):
            while len(found) == before:
                await asyncio.sleep(0.01)


async def publish_to_all(truth: Truth, address: BrokerAddress) -> list[str]:
    """A last message for each queue that takes it, and so for each process; gives their ids, when all are confirmed."""
    names = {f"last/{queue.name}": queue.name for queue in truth.queues.values() if not queue.refuses}
    wire = await Wire.open(address)
    confirmed: set[int] = set()

    def settle(frame: Any) -> None:
        tag = frame.method.delivery_tag
        confirmed.update(range(1, tag + 1) if frame.method.multiple else [tag])

    await wire.answer(lambda done: wire.channel.confirm_delivery(settle, callback=done))
    for name, queue in names.items():
        wire.channel.basic_publish("", queue, b"last", pika.BasicProperties(message_id=name, delivery_mode=2))
    async with asyncio.timeout(STOP_SECONDS):
        while len(confirmed) < len(names):
            await asyncio.sleep(0.01)
    await wire.close()
    return list(names)
