"""Producers with confirms and consumers with acknowledgements, which go to the next gateway when theirs is gone."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pika
from pika.exceptions import AMQPError

from tests.support.chaos.account import Account, Connection, Delivery, Message, MessageId
from tests.support.chaos.wire import Lost, Wire

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.support.interop_address import BrokerAddress

BODY_BYTES = 200
INTERVAL = 0.1  # seconds between two messages to one queue
MOST_UNCONFIRMED = 500  # of one producer
PREFETCH = 50
HOLD_SECONDS = 0.2  # at most, from a delivery to its acknowledgement
RECONNECT_SECONDS = 0.2
OPEN_SECONDS = 120.0

_PERSISTENT = 2  # delivery mode


class Door(NamedTuple):
    """Where clients get in: a gateway's container, and its address."""

    gateway: str
    address: BrokerAddress


class Client:
    """Works on one connection after the other until it is stopped; `account` gets to know of each."""

    def __init__(self, name: str, queues: Sequence[str], doors: Sequence[Door], account: Account) -> None:
        self.queues = queues
        self.account = account
        self.now = asyncio.get_running_loop().time
        self.stopping = asyncio.Event()
        self._name = name
        self._doors = list(doors)
        self._connections = 0
        self._task = asyncio.create_task(self._run(), name=name)

    async def stop(self) -> None:
        """Returns when it has ended in good order; raises what it failed with."""
        self.stopping.set()
        await self._task

    async def work(self, wire: Wire, connection: Connection) -> None:
        """Until it is to stop; raises Lost."""
        raise NotImplementedError

    async def _run(self) -> None:
        while not self.stopping.is_set():
            door = self._doors[0]
            try:
                wire = await Wire.open(door.address)
            except Lost:
                self._doors.append(self._doors.pop(0))
                await asyncio.sleep(RECONNECT_SECONDS)
                continue
            self._connections += 1
            name = f"{self._name}.{self._connections}"
            connection = self.account.connections[name] = Connection(name, door.gateway, self.now())
            await self._on_wire(wire, connection)

    async def _on_wire(self, wire: Wire, connection: Connection) -> None:
        wire.lost.add_done_callback(lambda lost: self._ended(connection, lost.result()))
        try:
            await self.work(wire, connection)
        except Lost as failure:
            self._ended(connection, str(failure))
            self._doors.append(self._doors.pop(0))
        else:
            connection.ended, connection.by_client = self.now(), True
        await wire.close()

    def _ended(self, connection: Connection, why: str) -> None:
        if connection.ended is None:
            connection.ended, connection.why = self.now(), why


class Producer(Client):
    """Publishes to each of its queues all the time; what was not confirmed on a lost connection is published anew."""

    def __init__(self, name: str, queues: Sequence[str], doors: Sequence[Door], account: Account) -> None:
        self._again: list[tuple[str, float]] = []  # queue, since when it waits
        self._unconfirmed: dict[int, Message] = {}  # by delivery tag
        super().__init__(name, queues, doors, account)

    @property
    def idle(self) -> bool:
        """Whether everything is confirmed."""
        return not self._unconfirmed and not self._again

    async def work(self, wire: Wire, connection: Connection) -> None:
        channel, number = wire.channel, 0
        channel.add_on_return_callback(_note_return(self.account))
        await wire.answer(lambda done: channel.confirm_delivery(self._settled, callback=done))
        for queue in self.queues:
            await wire.answer(lambda done, queue=queue: channel.queue_declare(queue, durable=True, callback=done))
        again, self._again = self._again, []
        try:
            for queue, since in again:
                number += 1
                self._publish(channel, MessageId(connection.name, queue, number), since)
            while not (self.stopping.is_set() and self.idle):
                for queue in () if self._is_full() else self.queues:
                    number += 1
                    self._publish(channel, MessageId(connection.name, queue, number))
                await asyncio.wait({wire.lost}, timeout=INTERVAL)
                if wire.lost.done():
                    raise Lost(wire.lost.result())
        finally:
            left, self._unconfirmed = self._unconfirmed, {}
            self._again += [(message.id.queue, message.waits_since) for message in left.values()]

    def _is_full(self) -> bool:
        return self.stopping.is_set() or len(self._unconfirmed) >= MOST_UNCONFIRMED

    def _publish(self, channel: Any, message_id: MessageId, since: float | None = None) -> None:
        now = self.now()
        message = self.account.published(message_id, now, since if since is not None else now)
        self._unconfirmed[message_id.number] = message
        try:
            properties = pika.BasicProperties(delivery_mode=_PERSISTENT, message_id=str(message_id))
            channel.basic_publish("", message_id.queue, message_id.to_body(BODY_BYTES), properties, mandatory=True)
        except AMQPError as failure:
            raise Lost(repr(failure)) from failure

    def _settled(self, frame: Any) -> None:
        method, now = frame.method, self.now()
        refused = "" if isinstance(method, pika.spec.Basic.Ack) else "nacked"
        tags = [tag for tag in self._unconfirmed if tag <= method.delivery_tag] if method.multiple else []
        for tag in tags or [method.delivery_tag]:
            message = self._unconfirmed.pop(tag)
            message.confirmed, message.refused = (None if refused else now), message.refused or refused


class Consumer(Client):
    """Consumes its queues, and acknowledges everything a while later, each message by itself."""

    def __init__(
        self, name: str, queues: Sequence[str], doors: Sequence[Door], account: Account, random: Random
    ) -> None:
        self._random = random
        self._held = 0
        super().__init__(name, queues, doors, account)

    async def work(self, wire: Wire, connection: Connection) -> None:
        channel, self._held = wire.channel, 0
        await wire.answer(lambda done: channel.basic_qos(prefetch_count=PREFETCH, callback=done))
        for queue in self.queues:
            await wire.answer(lambda done, queue=queue: channel.queue_declare(queue, durable=True, callback=done))
            take = self._taker(connection, queue)
            await wire.answer(
                lambda done, queue=queue, take=take: channel.basic_consume(
                    queue, take, consumer_tag=queue, callback=done
                )
            )
        stopping = asyncio.ensure_future(self.stopping.wait())
        await asyncio.wait({wire.lost, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        while self._held and not wire.lost.done():
            await asyncio.sleep(0.01)
        if wire.lost.done():
            raise Lost(wire.lost.result())

    def _taker(self, connection: Connection, queue: str) -> Any:
        loop, consumer = asyncio.get_running_loop(), f"{connection.name}:{queue}"

        def take(channel: Any, method: Any, _properties: Any, body: bytes) -> None:
            delivery = Delivery(loop.time(), consumer, connection.name, queue, method.redelivered)
            message_id = self.account.delivered(body, delivery)
            self._held += 1
            loop.call_later(
                self._random.random() * HOLD_SECONDS, self._acknowledge, channel, method.delivery_tag, message_id
            )

        return take

    def _acknowledge(self, channel: Any, tag: int, message_id: MessageId | None) -> None:
        with suppress(AMQPError):
            if channel.is_open:
                channel.basic_ack(tag)
                self._held -= 1
                if message_id:
                    self.account.acknowledged.add(message_id)


async def count_left(door: Door, queues: Sequence[str]) -> dict[str, int]:
    """How many messages each queue still has."""
    wire = await _opened(door)
    left = {}
    for queue in queues:
        answer = await wire.answer(
            lambda done, queue=queue: wire.channel.queue_declare(queue, passive=True, callback=done)
        )
        left[queue] = answer.method.message_count
    await wire.close()
    return left


async def _opened(door: Door) -> Wire:
    """A gateway that was killed last may still be starting."""
    async with asyncio.timeout(OPEN_SECONDS):
        while True:
            with suppress(Lost):
                return await Wire.open(door.address)
            await asyncio.sleep(RECONNECT_SECONDS)


def _note_return(account: Account) -> Any:
    def note(_channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        account.messages[MessageId.from_body(body)].refused = f"returned: {method.reply_text}"

    return note
