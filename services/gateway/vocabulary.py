"""What protocol engines and the broker say to each other, in no protocol's words.

An engine is sans-IO: bytes in, requests out; outcomes and deliveries in, bytes out. It holds no socket, no clock and no
loop; the connection around it (services/gateway/connections/connection.py) moves the bytes, carries the requests out in
the order of each session, and answers. `session` is the engine's number of a session (0-9-1: the channel).

Order: requests of one session are carried out one after the other; those of different sessions do not wait for each
other. What begins or ends a link waits for what was asked before it, and then only its own link waits for it.
`Publish` and `Settle` are never answered by `succeed`: publishes by `confirm`/`returned` where they have numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from services.common.message.facts import Attributes, Facts
from services.common.message.indexes import pick
from services.gateway.outcomes import DeliveryOutcome

MANAGEMENT = "$management"
"""The address of each virtual host's management node: of the default exchange the key, of links the node."""

type_ = type  # `type` is a field name below


class Node(Enum):
    """What has a name in a virtual host, and messages go to it or come from it."""

    QUEUE = "queue"
    EXCHANGE = "exchange"


# ------------------------------------------------------------------ requests: engine → broker


@dataclass(slots=True)
class Request:
    """Something that the peer wants; `session` is 0 for the connection itself, `link` 0 for the session itself.

    One that fails takes with it what waits behind it: of its link, or of the whole session.
    """

    session: int
    link: int = field(default=0, kw_only=True)


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
    client: str = ""  # what the application calls itself, where it says so only now


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
class EndSessions(Request):
    """The engine will close the connection, for a fault: nothing more is asked. → succeed when all sessions have done
    what was asked of them and are closed, or when that takes too long.
    """


@dataclass(slots=True)
class OpenSession(Request):
    """→ succeed, when a session that had the number before has ended. Until then nothing that is said of the number is
    the new one's, and the engine says nothing of it.
    """


@dataclass(slots=True)
class CloseSession(Request):
    """Unsettled deliveries are released, consumers end. → succeed (also when the engine itself failed the session)."""

    reason: str = field(default="", compare=False)
    """For the log: what was at fault in what the peer sent; "" where it was its wish, or something was refused."""


@dataclass(slots=True)
class FindNode(Request):
    """→ succeed with the first of `candidates` that is there; NotFound when none is."""

    candidates: Sequence[tuple[str, Node]]
    to_send: bool = False  # messages will go there; else they come from there


@dataclass(slots=True)
class Produce(Request):
    """Messages of the link will go to an exchange, with that key, or each with its own (None). → succeed.

    `settled`: its peer does not want to hear what becomes of them. A session's own link 0 begins as such a one.
    """

    exchange: str
    routing_key: str | None
    settled: bool = False


@dataclass(slots=True)
class EndProduce(Request):
    """No message of the link comes any more. Not answered."""


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
    lifetime: str = ""  # of one that its link makes for itself (services/common/topology/life.py)


@dataclass(slots=True)
class CloseLink(Request):
    """A link has ended that made queues which have a lifetime: what goes with it is gone then. → succeed."""


@dataclass(slots=True)
class DeleteQueue(Request):
    """→ succeed with the number of messages that went (int)."""

    name: str
    if_unused: bool = False
    if_empty: bool = False


@dataclass(slots=True)
class ReplaceQueue(Request):
    """A queue in the place of another of its name, without what waited in that, and bound. → succeed with
    QueueReplaced.

    Where it is refused, the other one stays as it is; where that is declared just so it stays, too, and is bound.
    """

    queue: DeclareQueue
    binding: Bind


@dataclass(slots=True)
class DropQueue(Request):
    """Of the connection: a queue of its own, whose link has ended, goes, at the latest with it. Not answered."""

    name: str


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


@dataclass(slots=True)
class FindBinding(Request):
    """Whether an exchange has a binding with this key to this queue; None: with any. → succeed with BindingFound."""

    exchange: str
    routing_key: str | None
    queue: str | None


class _Kind(NamedTuple):
    facts: Facts
    attributes: Attributes
    mandatory: bool = False
    immediate: bool = False
    more_keys: tuple[str, ...] = ()  # that they are routed by too; none that an engine gives


class Kind(_Kind):
    """What messages that are published alike have in common; an engine gives the same object for most of them.

    A tuple, since where no two messages are alike there is one for each; but it is told from others by its identity.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__


@dataclass(slots=True)
class Publish(Request):
    """Messages in the order in which they came, however mixed: columns, one value for each.

    `first` is the engine's number of the first, of the link's; then they ascend by one. By these it is told what became
    of them; 0: it does not want to know. Of a link, each has an outcome of its own: one that cannot be published is
    rejected with its error. In a `transaction` that was declared, 0: the session's own, if that was selected, their
    outcomes say that they are part of it; it cannot be committed when one was refused, or is for no queue.
    """

    kinds: Sequence[Kind]
    properties: Sequence[bytes]
    bodies: Sequence[bytes]
    first: int = 0
    transaction: int = 0

    def part(self, indexes: range) -> Publish:
        """Those at these indexes."""
        kinds, properties, bodies = self.kinds, self.properties, self.bodies
        columns = pick(kinds, indexes), pick(properties, indexes), pick(bodies, indexes)
        first = self.first and self.first + indexes.start
        return Publish(self.session, *columns, first, self.transaction, link=self.link)


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
    no_local: bool = False  # it does not want what its own connection publishes
    arguments: Mapping[str, Any] = field(default_factory=dict)
    by_credit: bool = False  # it is sent what Credit says, else what Limit said before
    replies_to: str = ""  # of the management node: the address that its requests name; "": the tag
    selector: str = ""  # of JMS: which messages it wants; "": whatever is next
    replay: int | None = None  # what came more seconds ago than that it does not want
    browse: bool = False  # it sees what waits, and takes nothing
    alone: bool = False  # the queue is there for it alone
    steals: bool = False  # it is what consumers of the queue were before, wherever they are: they are cancelled
    queue_id: int = 0  # of the queue that is meant; LinkStolen where another is in its place. 0: whichever is there


@dataclass(slots=True)
class Credit(Request):
    """How many deliveries of a consumer the peer takes in all, since it began (AMQP 1.0: delivery-count and
    link-credit); `Consume.by_credit` says that it goes by that. With `drain`: → succeed when nothing more is ready, so
    many were delivered, or another Credit comes: there is no delivery before the next one then. Without, no answer.
    """

    tag: str
    up_to: int
    drain: bool = False


@dataclass(slots=True)
class Cancel(Request):
    """→ succeed; no delivery to the tag after it. Unknown tags succeed too."""

    tag: str
    deletes: bool = False  # with it goes its queue, unless that is another's by now


@dataclass(slots=True)
class Get(Request):
    """→ succeed with Got, or with None when the queue is empty."""

    queue: str
    settled: bool = False


@dataclass(slots=True)
class Settle(Request):
    """Of deliveries `first`..`last`; first 0: all up to `last`; last 0: all. Unknown ones fail the session.

    `transaction` as of Publish.
    """

    first: int
    last: int
    outcome: DeliveryOutcome
    transaction: int = 0


@dataclass(slots=True)
class Recover(Request):
    """Release everything unsettled of the session. → succeed."""


@dataclass(slots=True)
class SelectConfirms(Request):
    """From now on the peer wants to hear what becomes of what it publishes, of the session's own. → succeed."""


@dataclass(slots=True)
class Flow(Request):
    """The peer stops (active False) or resumes its own deliveries on the session. → succeed."""

    active: bool


@dataclass(slots=True)
class Room(Request):
    """Whether the engine takes more of the session, of what its peer has no window for. Done at once, not answered."""

    there_is: bool


@dataclass(slots=True)
class Echo(Request):
    """Nothing is asked for, but to be answered behind what was asked before. → succeed."""


@dataclass(slots=True)
class SelectTransactions(Request):
    """Publishes and settlements wait for Commit from now on, in a transaction of the session's own. → succeed."""


@dataclass(slots=True)
class DeclareTransaction(Request):
    """One more, of which publishes and settlements are part that name it. → succeed with its number (int)."""


@dataclass(slots=True)
class Commit(Request):
    """→ succeed when on disk; fail when it could not be carried out: then nothing of it was, and deliveries settled in
    it are unsettled again. InDoubt: nobody knows; its session has to end. One that was declared is over either way.
    """

    transaction: int = 0


@dataclass(slots=True)
class Rollback(Request):
    """→ succeed; deliveries settled in the transaction are unsettled again. One that was declared is over."""

    transaction: int = 0
