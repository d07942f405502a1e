"""What protocol engines and the broker say to each other, in no protocol's words.

An engine is sans-IO: bytes in, requests out; outcomes and deliveries in, bytes out. It holds no socket, no clock and no
loop; the connection around it (services/gateway/connection.py) moves the bytes, carries the requests out in the order
of each session, and answers. `session` is the engine's number of a session (0-9-1: the channel).

Order: requests of one session are carried out one after the other; those of different sessions do not wait for each
other. `Publish` and `Settle` are never answered by `succeed`: publishes by `confirm`/`returned` where asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from services.common.errors import BrokerError
from services.common.message.facts import Attributes, Facts
from services.common.message.indexes import pick

type_ = type  # `type` is a field name below


class Outcome(Enum):
    """What a client says of deliveries."""

    ACCEPT = "accept"
    RELEASE = "release"  # requeue
    REJECT = "reject"  # do not requeue: dead-letter or drop


# ------------------------------------------------------------------ requests: engine → broker


@dataclass(slots=True)
class Request:
    """Something that the peer wants; `session` is 0 for the connection itself."""

    session: int


@dataclass(slots=True)
class Authenticate(Request):
    """SASL: `response` is the initial response or the answer to a challenge. → authenticated, challenge or fail."""

    mechanism: str
    response: bytes
    client_properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Open(Request):
    """→ succeed, or fail with NotFound / NotAllowed (the engine picks the protocol's words)."""

    virtual_host: str


@dataclass(slots=True)
class UpdateSecret(Request):
    """What proves from now on who the peer is (0-9-1: RabbitMQ's connection.update-secret). → succeed."""

    secret: bytes
    reason: str


@dataclass(slots=True)
class Close(Request):
    """The peer is done, or the engine ended the connection: nothing more is read. → succeed when all sessions have done
    what was asked of them and are closed; then what is to be sent is flushed, and the socket closed.
    """

    reason: str = ""  # empty: the peer asked, all in order; else one line for the log


@dataclass(slots=True)
class OpenSession(Request):
    """→ succeed, when a session that had the number before has ended. Until then nothing that is said of the number is
    the new one's, and the engine says nothing of it.
    """


@dataclass(slots=True)
class CloseSession(Request):
    """Unsettled deliveries are released, consumers end. → succeed (also when the engine itself failed the session)."""


@dataclass(slots=True)
class DeclareExchange(Request):
    name: str
    type: str
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class DeleteExchange(Request):
    name: str
    if_unused: bool = False


@dataclass(slots=True)
class DeclareQueue(Request):
    """→ succeed with QueueDeclared. `name` "" makes a name; the session remembers it for requests on queue ""."""

    name: str
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class DeleteQueue(Request):
    """→ succeed with the number of messages that went (int)."""

    name: str
    if_unused: bool = False
    if_empty: bool = False


@dataclass(slots=True)
class PurgeQueue(Request):
    """→ succeed with the number of messages that went (int)."""

    name: str


@dataclass(slots=True)
class Bind(Request):
    source: str
    destination: str
    to_exchange: bool
    routing_key: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Unbind(Request):
    source: str
    destination: str
    to_exchange: bool
    routing_key: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Kind:
    """What messages that are published alike have in common; an engine gives the same object for most of them."""

    facts: Facts
    attributes: Attributes
    mandatory: bool = False
    immediate: bool = False
    more_keys: tuple[str, ...] = ()  # that they are routed by too; none that an engine gives


@dataclass(slots=True)
class Publish(Request):
    """Messages in the order in which they came, however mixed: columns, one value for each."""

    kinds: Sequence[Kind]
    properties: Sequence[bytes]
    bodies: Sequence[bytes]

    def part(self, indexes: Sequence[int]) -> Publish:
        """Those at these indexes, which ascend."""
        kinds, properties, bodies = self.kinds, self.properties, self.bodies
        return Publish(self.session, pick(kinds, indexes), pick(properties, indexes), pick(bodies, indexes))


@dataclass(slots=True)
class Limit(Request):
    """Prefetch (0-9-1 basic.qos): `messages` 0 is none; `shared`: over all consumers of the session. → succeed."""

    messages: int
    shared: bool


@dataclass(slots=True)
class Consume(Request):
    """→ succeed with the consumer's tag (str), before its first delivery. Tag "" makes one."""

    queue: str
    tag: str
    exclusive: bool = False
    settled: bool = False  # no-ack
    no_local: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Cancel(Request):
    """→ succeed; no delivery to the tag after it. Unknown tags succeed too."""

    tag: str


@dataclass(slots=True)
class Get(Request):
    """→ succeed with Got, or with None when the queue is empty."""

    queue: str
    settled: bool = False


@dataclass(slots=True)
class Settle(Request):
    """Of deliveries `first`..`last`; first 0: all up to `last`; last 0: all. Unknown ones fail the session (406)."""

    first: int
    last: int
    outcome: Outcome


@dataclass(slots=True)
class Recover(Request):
    """Release everything unsettled of the session. → succeed."""


@dataclass(slots=True)
class Confirms(Request):
    """From now on publishes of the session are numbered from 1 and confirmed. → succeed."""


@dataclass(slots=True)
class Flow(Request):
    """The peer stops (active False) or resumes its own deliveries on the session. → succeed."""

    active: bool


@dataclass(slots=True)
class Echo(Request):
    """Nothing is asked for, but to be answered behind what was asked before. → succeed."""


@dataclass(slots=True)
class SelectTransactions(Request):
    """Publishes and settlements wait for Commit from now on. → succeed."""


@dataclass(slots=True)
class Commit(Request):
    """→ succeed when on disk; fail when it could not be carried out (then nothing of it was)."""


@dataclass(slots=True)
class Rollback(Request):
    """→ succeed; deliveries settled in the transaction are unsettled again."""


# ------------------------------------------------------------------ broker → engine


@dataclass(slots=True)
class QueueDeclared:
    name: str
    message_count: int
    consumer_count: int


@dataclass(slots=True)
class Got:
    number: int  # delivery tag
    redelivered: bool
    facts: Facts
    properties: bytes
    body: bytes
    message_count: int  # that remain ready


@dataclass(slots=True)
class Deliveries:
    """For one consumer, columns. `first`: delivery number of the first, then ascending by one."""

    tag: str
    first: int
    redelivered: bool
    facts: Sequence[Facts]
    properties: Sequence[bytes]
    bodies: Sequence[bytes]


@dataclass(slots=True)
class Returned:
    """Messages that reached no queue (`no_consumers`: immediate, and none was ready)."""

    publish: Publish
    indexes: Sequence[int]  # in its columns
    no_consumers: bool = False


class Engine(Protocol):
    """One connection's protocol. Never raises on what the peer sends: it answers as its specification says."""

    @property
    def name(self) -> str:
        """What the peer speaks: "AMQP 0-9-1". Before it has spoken, the newest of what it may."""

    def receive(self, data: bytes) -> list[Request]:
        """What the bytes ask for; may be called with any split of the stream. Not all at once when it is much: then
        `unread` says so, and the next call goes on, also with no bytes.
        """

    def data_to_send(self) -> list[bytes]:
        """Takes what is to be written, in order."""

    @property
    def heartbeat(self) -> int:
        """Seconds between beats as negotiated, 0 for none. The connection calls `beat` when it has written nothing for
        half of it, and ends the peer after two without a byte from it.
        """

    @property
    def unread(self) -> bool:
        """Whether more came than the last `receive` has looked at."""

    @property
    def incomplete(self) -> int:
        """Bytes that came and are kept until the rest of their frame, or of their message, is there."""

    @property
    def closing(self) -> bool:
        """Whether only the peer's farewell is waited for; the connection does not wait for it long."""

    def beat(self) -> None: ...

    def challenge(self, data: bytes) -> None: ...

    def authenticated(self, final: bytes = b"") -> None:
        """The answer to Authenticate: the client is who it says; `final` is what its mechanism tells it with that."""

    def succeed(self, request: Request, result: Any = None) -> None:  # noqa: ANN401 - as each request says
        """The answer to `request`."""

    def fail(self, request: Request, error: BrokerError) -> None:
        """Ends the session or the connection, as the error's reach and the request say. For a session: its later
        requests are ignored until the peer has acknowledged, and one CloseSession follows from `receive` or at once
        from here by `pending_requests`.
        """

    def pending_requests(self) -> list[Request]:
        """Requests that arose from the broker's own calls (a CloseSession after `fail`); call after answering."""

    def deliver(self, session: int, deliveries: Deliveries) -> None: ...

    def confirm(self, session: int, first: int, last: int, *, cumulative: bool, accepted: bool) -> None:
        """Publishes `first`..`last` are safe (or refused); `cumulative`: so is every one before them."""

    def returned(self, session: int, returned: Returned) -> None:
        """Sends messages back; called before their confirm."""

    def cancelled(self, session: int, tag: str) -> None:
        """The broker ended a consumer (its queue was deleted)."""

    def blocked(self, reason: str | None) -> None:
        """Publishers of this connection are held back (None: no longer). Told to peers that understand it."""

    def close(self, error: BrokerError) -> None:
        """Ends the connection from the broker's side (320 CONNECTION_FORCED for a shutdown), a Close follows."""
