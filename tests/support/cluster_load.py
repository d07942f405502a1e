"""Load that goes on through crashes: pipelined producers with confirms, consumers with acks or transactions, all of
which reconnect. It keeps account of what was promised: what was confirmed must be delivered, and what was acknowledged
in a committed transaction must not be delivered again.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pika.exceptions

from benchmarks.confirms import Confirms
from benchmarks.failure import BenchmarkError
from benchmarks.wire import Address, Connection, publication
from tests.support.interop_pika import connected
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.interop_address import BrokerAddress

BATCH = 50
PAUSE_SECONDS = 0.01
RECONNECT_SECONDS = 0.2
CONFIRM_SECONDS = 120.0  # a store process that stands still is given ten, and the machine has others
PREFETCH = 200
ACK_EVERY = 20
DRAIN_SECONDS = 60.0  # in which nothing comes
BODY_BYTES = 64
AHEAD = 10_000  # messages by which a producer outruns its consumer at most: a busy machine drains more for minutes


class Worker:
    """A thread that does its work again and again, on a new connection after each failure, until it is stopped."""

    def __init__(self) -> None:
        self.reconnects = 0
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends it; raises what it failed with, other than a lost connection."""
        self._stopping.set()
        self._thread.join(CONFIRM_SECONDS + 10)
        assert not self._thread.is_alive(), f"{self} hangs"
        if self._failure:
            raise self._failure

    def connect_and_work(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.connect_and_work()
            except (OSError, BenchmarkError, pika.exceptions.AMQPError):
                self.reconnects += 1
                time.sleep(RECONNECT_SECONDS)
            except BaseException as failure:
                self._failure = failure
                raise


class Producer(Worker):
    """Publishes persistent messages in batches; a batch counts as confirmed when all of it is."""

    def __init__(self, broker: BrokerAddress, queue: str) -> None:
        super().__init__()
        self.confirmed: list[str] = []
        self._address = Address(broker.host, broker.port, broker.user, broker.password)
        self.queue = queue
        self.taken: Callable[[], int] | None = None  # how many its consumer has, where it waits for that
        self._sent = 0

    def connect_and_work(self) -> None:
        connection = Connection(self._address)
        try:
            connection.socket.settimeout(CONFIRM_SECONDS)
            self.declare(connection)
            connection.confirm_publishes()
            confirms = Confirms()
            while not self._stopping.is_set():
                if self.taken is None or len(self.confirmed) < self.taken() + AHEAD:
                    self._publish(connection, confirms)
                time.sleep(PAUSE_SECONDS)
        finally:
            connection.close()

    def declare(self, connection: Connection) -> None:
        """Called with a new connection."""
        connection.declare_queue(self.queue, durable=True)

    def promised(self, queue: str) -> set[str]:
        """What a queue must have, or have given to its consumer."""
        return set(self.confirmed)

    def _publish(self, connection: Connection, confirms: Confirms) -> None:
        names = [f"{self.queue}/{self._sent + number}" for number in range(BATCH)]
        self._sent += BATCH
        expected = confirms.count + BATCH
        connection.socket.sendall(b"".join(self._encoded(name) for name in names))
        while confirms.count < expected:
            data = connection.socket.recv(65536)
            if not data:
                raise ConnectionResetError
            confirms.receive(data)
        self.confirmed.extend(names)

    def _encoded(self, name: str) -> bytes:
        return publication("", self.queue, name.ljust(BODY_BYTES).encode(), persistent=True)


class Consumer(Worker):
    """Consumes with acknowledgements, many at a time."""

    def __init__(self, broker: BrokerAddress, queue: str) -> None:
        super().__init__()
        self.delivered: set[str] = set()
        self.again: list[str] = []
        self.broken_promises: list[str] = []
        self._broker = broker
        self.queue = queue

    def connect_and_work(self) -> None:
        with connected(self._broker, socket_timeout=5) as connection:
            channel = connection.channel()
            self.prepare(channel)
            channel.queue_declare(self.queue, durable=True)
            channel.basic_qos(prefetch_count=PREFETCH)
            self._consume(channel)

    def prepare(self, channel: Any) -> None:
        """Called with a new channel."""

    def acknowledge(self, channel: Any, tag: int, names: list[str]) -> None:
        """Settles everything up to `tag`, which is `names`."""
        channel.basic_ack(tag, multiple=True)

    def _consume(self, channel: Any) -> None:
        names: list[str] = []
        tag = 0
        for method, _, body in channel.consume(self.queue, inactivity_timeout=0.1):
            if method:
                tag = method.delivery_tag
                names.append(body.decode().rstrip())
                self._deliver(names[-1])
            if names and (method is None or len(names) >= ACK_EVERY):
                self.acknowledge(channel, tag, names)
                names = []
            if self._stopping.is_set():
                return

    def _deliver(self, name: str) -> None:
        if name in self.delivered:
            self.again.append(name)
        self.delivered.add(name)


class TransactionalConsumer(Consumer):
    """Acknowledges in transactions, and remembers what was committed: that must not come again."""

    def __init__(self, broker: BrokerAddress, queue: str) -> None:
        super().__init__(broker, queue)
        self.committed: set[str] = set()

    def prepare(self, channel: Any) -> None:
        channel.tx_select()

    def acknowledge(self, channel: Any, tag: int, names: list[str]) -> None:
        super().acknowledge(channel, tag, names)
        channel.tx_commit()
        self.committed.update(names)

    def _deliver(self, name: str) -> None:
        super()._deliver(name)
        if name in self.committed:
            self.broken_promises.append(name)


class Load:
    """Producers and consumers of a few queues, so many of them transactional."""

    def __init__(self, broker: BrokerAddress, prefix: str, queues: int = 3, transactional: int = 1) -> None:
        names = [f"{prefix}-{number}" for number in range(queues)]
        kinds: list[Callable[..., Consumer]] = [TransactionalConsumer] * transactional
        kinds += [Consumer] * (queues - transactional)
        self.producers = [Producer(broker, name) for name in names]
        self.consumers = [kind(broker, name) for kind, name in zip(kinds, names, strict=True)]
        self.ways = list(zip(self.producers, self.consumers, strict=True))
        for producer, consumer in self.ways:
            producer.taken = consumer.delivered.__len__

    def start(self) -> None:
        for worker in (*self.producers, *self.consumers):
            worker.start()

    def wait_for_progress(self) -> None:
        """Returns when every queue has taken and given messages since the call."""
        before = self._progress()
        wait_until(
            lambda: all(now > then for now, then in zip(self._progress(), before, strict=True)),
            DRAIN_SECONDS,
            "progress on every queue",
        )

    def finish(self) -> None:
        """Stops producing, waits until the queues are empty, stops consuming."""
        for producer in self.producers:
            producer.stop()
        with suppress(AssertionError):  # what is missing is told by `lost`
            before = self._delivered()
            while self.lost():
                before = self._more_than(before)
        time.sleep(0.5)
        for consumer in self.consumers:
            consumer.stop()

    def confirmed(self) -> int:
        return sum(len(producer.confirmed) for producer in self.producers)

    def lost(self) -> list[str]:
        """What was confirmed and is not delivered."""
        return [
            name
            for producer, consumer in self.ways
            for name in producer.promised(consumer.queue) - consumer.delivered.copy()
        ]

    def broken_promises(self) -> list[str]:
        """What was delivered again after its acknowledgement was committed."""
        return [name for consumer in self.consumers for name in consumer.broken_promises]

    def reconnects(self) -> int:
        """How many connections were lost."""
        return sum(worker.reconnects for worker in (*self.producers, *self.consumers))

    def _more_than(self, before: list[int]) -> list[int]:
        """What is delivered once it is more: how much is left is not known, nor how fast it comes.

        `before` is from before the look at what is missing: the last may have come since. Raises AssertionError where
        nothing comes for long.
        """
        wait_until(lambda: self._delivered() > before, DRAIN_SECONDS, "another delivery")
        time.sleep(0.5)  # `lost` looks at all, and consumers want the processor
        return self._delivered()

    def _progress(self) -> list[int]:
        return [len(producer.confirmed) for producer in self.producers] + self._delivered()

    def _delivered(self) -> list[int]:
        return [len(consumer.delivered) for consumer in self.consumers]
