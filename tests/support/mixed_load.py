"""Load as in cluster_load, and besides it traffic that fans out and alternates: no message is like the one before it.

Of a producer's messages every other goes to all of its queues, the rest to one queue each, in turn; two of three are
persistent, and only these are promised. All are counted: none may come to a queue twice while connections last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.properties import properties, table
from benchmarks.wire import Connection, publication_of
from tests.support.cluster_load import BODY_BYTES, Consumer, Load, Producer, TransactionalConsumer

if TYPE_CHECKING:
    from tests.support.interop_address import BrokerAddress

EXCHANGE = "amq.topic"
_LARGE_BYTES = 4000
_EXPIRATION_MS = 3_600_000


class MixedProducer(Producer):
    """Publishes to several queues through a topic exchange."""

    def __init__(self, broker: BrokerAddress, prefix: str, queues: int) -> None:
        super().__init__(broker, f"{prefix}-mixed")
        self.queues = [f"{self.queue}-{number}" for number in range(queues)]

    def declare(self, connection: Connection) -> None:
        for number, queue in enumerate(self.queues):
            connection.declare_queue(queue, durable=True)
            for key in (f"{self.queue}.all.*", f"{self.queue}.one.{number}"):
                connection.bind(queue, EXCHANGE, key)

    def promised(self, queue: str) -> set[str]:
        return {name for name in self.confirmed.copy() if _is_persistent(name) and self._goes_to(name, queue)}

    def _goes_to(self, name: str, queue: str) -> bool:
        number = _number(name)
        return number % 2 == 0 or self.queues[number // 2 % len(self.queues)] == queue

    def _encoded(self, name: str) -> bytes:
        number = _number(name)
        key = f"all.{number % 100}" if number % 2 == 0 else f"one.{number // 2 % len(self.queues)}"
        said = properties(
            persistent=_is_persistent(name),
            priority=number % 10,
            expiration=str(_EXPIRATION_MS + number % 50),
            headers=table({"order": number}),
            message_id=name,
        )
        body = name.ljust(BODY_BYTES if number % 5 else _LARGE_BYTES).encode()
        return publication_of(EXCHANGE, f"{self.queue}.{key}", said, body)


def _number(name: str) -> int:
    return int(name.rpartition("/")[2])


def _is_persistent(name: str) -> bool:
    return _number(name) % 3 != 2


class MixedLoad(Load):
    """Three queues that a producer has for itself, and three of one whose messages fan out and alternate."""

    def __init__(self, broker: BrokerAddress, prefix: str, queues: int = 3, transactional: int = 1) -> None:
        super().__init__(broker, prefix, queues, transactional)
        producer = MixedProducer(broker, prefix, queues)
        consumers = [
            (Consumer if number else TransactionalConsumer)(broker, queue)
            for number, queue in enumerate(producer.queues)
        ]
        self.producers.append(producer)
        self.consumers += consumers
        self.ways += [(producer, consumer) for consumer in consumers]

    def doubled(self) -> list[str]:
        """What came to a queue again, of what is persistent: what is not may, where a partition changes its owner.

        It may all where a connection was lost, or a transaction with it.
        """
        return [
            name
            for producer, consumer in self.ways
            for name in consumer.again
            if not isinstance(producer, MixedProducer) or _is_persistent(name)
        ]
