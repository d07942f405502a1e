"""What happened in a chaos run, as its clients saw it: every message, every connection, every disturbance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

KILL, PAUSE, CUT, POWER_OFF, SCALE_UP, SCALE_DOWN = "kill", "pause", "cut", "power off", "scale up", "scale down"
AWAY = {KILL, CUT, POWER_OFF}  # kinds after which the container is not reached


class MessageId(NamedTuple):
    """`producer` is one channel, so a producer has another name after each reconnect; numbers ascend within it."""

    producer: str
    queue: str
    number: int

    def __str__(self) -> str:
        """Its AMQP message-id, by which the record finds it."""
        return f"{self.queue}#{self.number} of {self.producer}"

    def to_body(self, size: int) -> bytes:
        return "|".join(map(str, self)).ljust(size).encode()

    @classmethod
    def from_body(cls, body: bytes) -> MessageId:
        """Raises ValueError for what no producer here has written."""
        producer, queue, number = body.decode().rstrip().split("|")
        return cls(producer, queue, int(number))


class Delivery(NamedTuple):
    """`consumer` is one consumer on one connection."""

    at: float
    consumer: str
    connection: str
    queue: str
    redelivered: bool


@dataclass(slots=True)
class Message:
    """`waits_since` is when its producer first tried: on an earlier connection, if that broke before the confirm."""

    id: MessageId
    published: float
    waits_since: float
    confirmed: float | None = None
    refused: str = ""  # nacked or returned
    deliveries: list[Delivery] = field(default_factory=list)


@dataclass(slots=True)
class Connection:
    """`why` it ended is what the client was told, or what it did."""

    name: str
    gateway: str
    opened: float
    ended: float | None = None
    why: str = ""
    by_client: bool = False


@dataclass(slots=True)
class Disturbance:
    """`target` is a container; what kills it lasts until it is started again, a pause or a cut until it is undone."""

    kind: str
    target: str
    began: float
    ended: float = float("inf")

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


class Writing(NamedTuple):
    """Writes to a partition's journal by one writer, and the holder of the lease when they were committed."""

    partition: int
    epoch: int
    member: str
    writer: int
    count: int


@dataclass(slots=True)
class Account:
    """Filled by the clients of a run, read by the checker."""

    messages: dict[MessageId, Message] = field(default_factory=dict)
    connections: dict[str, Connection] = field(default_factory=dict)
    disturbances: list[Disturbance] = field(default_factory=list)
    acknowledged: set[MessageId] = field(default_factory=set)
    strange: list[str] = field(default_factory=list)  # deliveries of what no client published
    left_over: dict[str, int] = field(default_factory=dict)  # by queue, when all is over
    writings: list[Writing] = field(default_factory=list)
    refused_writes: int = 0

    def published(self, message_id: MessageId, at: float, waits_since: float) -> Message:
        message = self.messages[message_id] = Message(message_id, at, waits_since)
        return message

    def delivered(self, body: bytes, delivery: Delivery) -> MessageId | None:
        """Notes a delivery; gives the id of its message, if a client published that."""
        try:
            message_id = MessageId.from_body(body)
        except ValueError:
            message_id = None
        message = self.messages.get(message_id) if message_id else None
        if message is None:
            self.strange.append(f"{body[:60]!r} in {delivery.queue}")
            return None
        message.deliveries.append(delivery)
        return message.id
