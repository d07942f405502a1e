"""Clients that go on through anything, each on one connection after the other; `truth` gets to know what they saw."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pika
from pika.exceptions import AMQPError

from tests.support.chaos.wire import Lost, Wire
from tests.support.fates.truth import ACKED, CONFIRMED, REFUSED, REJECTED, RETURNED, ROLLED_BACK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from tests.support.fates.truth import Kind, Publication, Truth
    from tests.support.interop_address import BrokerAddress

RECONNECT_SECONDS = 0.1
MOST_UNCONFIRMED = 200
PREFETCH = 20
GETS_EVERY = 0.05
REJECTED_SHARE, RELEASED_SHARE = 0.1, 0.05
HOLD_SECONDS = 0.05


class Client:
    """Works on one connection after the other until it is stopped."""

    def __init__(self, name: str, door: Callable[[], BrokerAddress], truth: Truth) -> None:
        self.truth = truth
        self.stopping = asyncio.Event()
        self.name = name
        self._door = door
        self._task = asyncio.create_task(self._run(), name=name)

    async def stop(self) -> None:
        """Returns when it has ended in good order; raises what it failed with."""
        self.stopping.set()
        await self._task

    async def work(self, wire: Wire) -> None:
        """Until it is to stop; raises Lost."""
        raise NotImplementedError

    async def until(self, wire: Wire, seconds: float) -> None:
        """Returns after so long; raises Lost as soon as it is."""
        await asyncio.wait({wire.lost}, timeout=max(seconds, 0))
        if wire.lost.done():
            raise Lost(wire.lost.result())

    async def _run(self) -> None:
        while not self.stopping.is_set():
            with suppress(Lost):
                wire = await Wire.open(self._door(), self.name)
                with suppress(Lost):
                    await self.work(wire)
                await wire.close()
                continue
            await asyncio.sleep(RECONNECT_SECONDS)


class Publisher(Client):
    """Publishes one kind after the other, each message with a name of its own, as steadily as it can; with confirms."""

    def __init__(
        self, name: str, door: Callable[[], BrokerAddress], truth: Truth, kinds: Sequence[Kind], rate: float
    ) -> None:
        self._kinds = itertools.cycle(kinds)
        self._rate = rate
        self._numbers = itertools.count()
        self._unconfirmed: dict[int, Publication] = {}
        super().__init__(name, door, truth)

    async def work(self, wire: Wire) -> None:
        channel, tags = wire.channel, itertools.count(1)
        self._unconfirmed = {}  # what was not is in doubt for ever
        channel.add_on_return_callback(self._returned)
        await wire.answer(lambda done: channel.confirm_delivery(self._settled, callback=done))
        loop = asyncio.get_running_loop()
        began, sent = loop.time(), 0
        while not self.stopping.is_set():
            due = int((loop.time() - began) * self._rate)
            while sent < due and len(self._unconfirmed) < MOST_UNCONFIRMED:
                self._unconfirmed[next(tags)] = self.publish(wire)
                sent += 1
            sent = due  # what could not be sent in its time is not sent later
            await self.until(wire, 0.01)
        while self._unconfirmed:
            await self.until(wire, 0.01)

    def publish(self, wire: Wire) -> Publication:
        """The next message; raises Lost."""
        kind = next(self._kinds)
        publication = self.truth.published(f"{self.name}/{next(self._numbers)}", kind)
        properties = pika.BasicProperties(
            message_id=publication.name,
            delivery_mode=2 if kind.persistent else 1,
            priority=kind.priority,
            expiration=str(kind.expiration) if kind.expiration else None,
        )
        try:
            body = publication.name.encode()
            wire.channel.basic_publish(kind.exchange, kind.key, body, properties, mandatory=kind.mandatory)
        except AMQPError as failure:
            raise Lost(repr(failure)) from failure
        return publication

    def _settled(self, frame: Any) -> None:
        method = frame.method
        outcome = CONFIRMED if isinstance(method, pika.spec.Basic.Ack) else REFUSED
        tags = [tag for tag in self._unconfirmed if tag <= method.delivery_tag] if method.multiple else []
        for tag in tags or [method.delivery_tag]:
            self.truth.told(self._unconfirmed.pop(tag), outcome)

    def _returned(self, _channel: Any, _method: Any, _properties: Any, body: bytes) -> None:
        self.truth.told(self.truth.messages[body.decode()], RETURNED)


class Transactor(Publisher):
    """Publishes three messages in each transaction; one of four transactions is rolled back."""

    async def work(self, wire: Wire) -> None:
        channel = wire.channel
        await wire.answer(lambda done: channel.tx_select(callback=done))
        for number in itertools.count(1):
            if self.stopping.is_set():
                return
            published = [self.publish(wire) for _ in range(3)]
            end, outcome = (channel.tx_commit, CONFIRMED) if number % 4 else (channel.tx_rollback, ROLLED_BACK)
            await wire.answer(lambda done, end=end: end(callback=done))
            for publication in published:
                self.truth.told(publication, outcome)
            await self.until(wire, 3 / self._rate)


class Consumer(Client):
    """Takes from its queues: most is acknowledged, some is rejected, and some put back, once."""

    def __init__(
        self, name: str, door: Callable[[], BrokerAddress], truth: Truth, queues: Sequence[str], random: Random
    ) -> None:
        self._queues = queues
        self._random = random
        self._held = 0
        super().__init__(name, door, truth)

    async def work(self, wire: Wire) -> None:
        channel, self._held = wire.channel, 0
        await wire.answer(lambda done: channel.basic_qos(prefetch_count=PREFETCH, callback=done))
        for queue in self._queues:
            take = self._taker(wire, queue)
            await wire.answer(lambda done, queue=queue, take=take: channel.basic_consume(queue, take, callback=done))
        while not self.stopping.is_set():
            await self.until(wire, 0.05)
        # Its consumers go first, so that nothing is sent any more that it would have to put back.
        for tag in list(channel.consumer_tags):
            await wire.answer(lambda done, tag=tag: channel.basic_cancel(tag, callback=done))
        while self._held:
            await self.until(wire, 0.01)

    def _taker(self, wire: Wire, queue: str) -> Any:
        loop = asyncio.get_running_loop()

        def take(_channel: Any, method: Any, _properties: Any, body: bytes) -> None:
            name = body.decode()
            self.truth.delivered(name, queue)
            self._held += 1
            loop.call_later(self._random.random() * HOLD_SECONDS, self._end, wire, method, name, queue)

        return take

    def _end(self, wire: Wire, method: Any, name: str, queue: str) -> None:
        channel, drawn = wire.channel, self._random.random()
        if wire.lost.done() or not channel.is_open:
            return
        self._held -= 1
        with suppress(AMQPError):
            if drawn < RELEASED_SHARE and not method.redelivered:
                channel.basic_reject(method.delivery_tag, requeue=True)
            elif drawn < RELEASED_SHARE + REJECTED_SHARE:
                self.truth.settled(name, queue, REJECTED)
                channel.basic_reject(method.delivery_tag, requeue=False)
            else:
                self.truth.settled(name, queue, ACKED)
                channel.basic_ack(method.delivery_tag)


class Getter(Client):
    """Asks one queue after the other for a message, and acknowledges it."""

    def __init__(self, name: str, door: Callable[[], BrokerAddress], truth: Truth, queues: Sequence[str]) -> None:
        self._queues = itertools.cycle(queues)
        super().__init__(name, door, truth)

    async def work(self, wire: Wire) -> None:
        while not self.stopping.is_set():
            queue = next(self._queues)
            if got := await get(wire, queue):
                tag, name = got
                self.truth.delivered(name, queue)
                self.truth.settled(name, queue, ACKED)
                wire.channel.basic_ack(tag)
            await self.until(wire, GETS_EVERY)


async def get(wire: Wire, queue: str) -> tuple[int, str] | None:
    """The delivery tag and the name of the next message of a queue; None where there is none. Raises Lost."""

    def ask(done: Callable[[Any], None]) -> None:
        wire.channel.add_callback(lambda _: done(None), [pika.spec.Basic.GetEmpty])
        wire.channel.basic_get(queue, lambda _, method, __, body: done((method.delivery_tag, body.decode())))

    return await wire.answer(ask)
