"""What clients saw, in the order in which they saw it: what the judge judges.

`at`, `asked`, `answered` and the like are numbers of one counter over everything that happened on the clients' side, so
that "before" and "after" have a meaning across connections; `time` is virtual seconds. None is: it never happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NEVER = 1 << 60


@dataclass(slots=True, eq=False)
class Connected:
    """One connection's life. `how` it ended: clean, aborted (by the client), broken (by no one's request), refused."""

    number: int
    client: str
    gateway: str
    host: str
    opened: int
    ending: int | None = None  # when the client asked for its end, or saw it
    ended: int | None = None
    how: str = ""
    code: int = 0
    text: str = ""


@dataclass(slots=True, eq=False)
class Opened:
    """One channel's life, or one session's."""

    number: int
    mode: str  # plain, confirm or tx; session
    connection: Connected
    shared_limit: bool = False  # one prefetch over all consumers
    limited: bool = False  # its consumers hold so many, or have credit for so many
    leaving: int | None = None  # when the client asked for its end
    ending: int | None = None
    code: int = 0  # that the broker closed it with
    text: str = ""

    @property
    def held_until(self) -> int:
        """Until when it certainly stood for the broker too; 0 when that may have known of its end before the client."""
        if self.connection.how in {"broken", "refused"} or self.code not in {0, 200}:
            return 0
        return min(NEVER if at is None else at for at in (self.leaving, self.ending, self.connection.ending))


@dataclass(slots=True, eq=False)
class Transaction:
    """Between two ends: `outcome` is open, committed, rolled_back, refused (certainly nothing of it) or unknown."""

    channel: Opened
    outcome: str = "open"
    asked: int | None = None
    answered: int | None = None
    published: list[Sent] = field(default_factory=list)
    settled: list[Delivered] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Sent:
    """One publish. `bound` is when it was certainly routed: a later answer on its channel had come."""

    id: str
    host: str
    exchange: str
    key: str
    headers: dict[str, Any]
    persistent: bool
    priority: int
    ttl: int | None  # ms
    mandatory: bool
    immediate: bool
    size: int
    channel: Opened
    number: int  # among those of its channel
    at: int
    time: float
    bound: int | None = None
    confirmed: int | None = None
    refused: int | None = None  # nack
    returned: int | None = None
    return_code: int = 0
    transaction: Transaction | None = None
    link: str = ""  # by which it went, where there are links
    due: float | None = None  # before which it is not to be delivered, by queues that hold


@dataclass(slots=True, eq=False)
class Consuming:
    """One consumer's life; `attached` is when consume-ok came, `ending` when the client asked for its end or saw it."""

    host: str
    queue: str
    tag: str
    channel: Opened
    no_ack: bool
    exclusive: bool
    asked: int
    attached: int | None = None
    ending: int | None = None
    cancelled_by_broker: bool = False
    selector: str = ""  # one of CHOICES
    browses: bool = False  # by what it has said itself
    no_local: bool = False  # likewise
    by_default: bool = False  # the selector is the queue's
    stolen: bool = False  # by a link of its name
    replay: int | None = None  # it wants what came so many seconds before it, and since


SAID = "x-opt-said"
"""The annotation that clients of AMQP 1.0 add to what they give back …"""
ADDED = "x-hopline-annotations"
"""… and the header in which one of 0-9-1 has all of them."""


@dataclass(slots=True, eq=False)
class Delivered:
    """One basic.deliver, basic.get-ok, or transfer. `settled_as`: ack, requeue, reject, none (no-ack)."""

    id: str
    host: str
    queue: str
    channel: Opened
    consumer: Consuming | None  # None: basic.get
    tag: int
    redelivered: bool
    exchange: str | None  # None: it does not say
    key: str | None
    properties: Any
    intact: bool
    at: int
    time: float
    draining: bool
    no_ack: bool = False
    deaths: tuple[tuple[str, str, int], ...] = ()  # queue, reason, count of its x-death
    settled_as: str = ""
    settled: int | None = None
    known: int | None = None  # a later answer on the channel had come
    transaction: Transaction | None = None
    back: int | None = None  # when a rollback ended what it was settled in
    before: int | None = None  # attempts before this one, where the protocol says how many
    said: str = ""  # the annotation that it was given back with
    refused: bool = False  # as undeliverable to its consumer
    attempt: bool = True  # it counts as one, even if it was given back: not by AMQP 1.0's released


@dataclass(slots=True, eq=False)
class Drained:
    """One drain of a link: `unused` is the credit that was left when it was answered."""

    consumer: Consuming
    asked: int
    answered: int | None = None
    unused: int = 0


@dataclass(slots=True, eq=False)
class Asked:
    """One request about one queue or exchange, or a change of the topology, with the time it took."""

    what: str
    host: str
    arguments: dict[str, Any]
    channel: Opened
    asked: int
    time: float = 0.0
    answered: int | None = None
    outcome: str = ""  # ok, closed (the broker closed the channel), lost
    attempts: int = 0  # that were lost before: one of them may still be carried out
    code: int = 0
    result: Any = None


@dataclass(slots=True, eq=False)
class Fault:
    """One fault, from when it began until its effects were over by the plan."""

    what: str
    names: tuple[str, ...]
    began: int
    time: float
    seconds: float = 0.0
    ended: int | None = None


@dataclass
class History:
    """Everything. `tick` gives the next number."""

    clock: Callable[[], float]
    now: int = 0
    times: list[float] = field(default_factory=list)  # of each number
    draining: bool = False
    healed: int | None = None
    phase: str = "starting"
    clock_at_end: float = 0.0
    connections: list[Connected] = field(default_factory=list)
    channels: list[Opened] = field(default_factory=list)
    sent: dict[str, Sent] = field(default_factory=dict)
    consumers: list[Consuming] = field(default_factory=list)
    deliveries: list[Delivered] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    drains: list[Drained] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    counts: list[tuple[str, str, int, int, int]] = field(default_factory=list)  # host, queue, said, drained, left
    stuck: list[str] = field(default_factory=list)  # what was not answered though everything was healed
    breaches: list[str] = field(default_factory=list)  # of the protocol, by the broker
    texts: list[str] = field(default_factory=list)  # what clients of 1.0 were told of links and messages that failed
    subscriptions: dict[tuple[str, str], Any] = field(default_factory=dict)  # by virtual host and name of the link
    accounts: dict[str, int] = field(default_factory=dict)
    ledger: Any = None
    complaints: list[str] = field(default_factory=list)

    def tick(self) -> int:
        self.now += 1
        self.times.append(self.clock())
        return self.now

    def time_of(self, at: int) -> float:
        """When that was; what has not happened happens after everything."""
        return self.times[at - 1] if 0 < at <= self.now else float("inf") if at else 0.0
