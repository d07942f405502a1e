"""What the broker says to a protocol engine, in no protocol's words: the other half of `vocabulary`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from services.common.message.facts import Facts
from services.gateway.outcomes import PublishDisposition
from services.gateway.vocabulary import Publish, Request

ANSWERED: Final = object()
"""What a request gives of which its connection has told the engine already."""


@dataclass(slots=True)
class QueueDeclared:
    name: str
    message_count: int
    consumer_count: int
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of one that was there


class QueueReplaced(NamedTuple):
    """`created`: there was none of its name."""

    queue_id: int
    created: bool


@dataclass(slots=True)
class BindingFound:
    """What is not there, or whether there is such a binding."""

    unknown_exchange: bool = False
    unknown_queue: bool = False
    is_bound: bool = False


@dataclass(slots=True)
class Got:
    number: int  # delivery tag
    redelivered: bool
    facts: Facts
    properties: bytes
    body: bytes
    message_count: int  # that remain ready
    attempts: int = 0  # as Deliveries has them
    acquired: int = 0


@dataclass(slots=True)
class Deliveries:
    """For one consumer, columns. `first`: delivery number of the first, then ascending by one."""

    tag: str
    first: int
    attempts: int  # how often each was delivered before and came back, as far as that counts
    facts: Sequence[Facts]
    properties: Sequence[bytes]
    bodies: Sequence[bytes]
    acquired: int = 0  # the same with those who only gave it back, where clients are told of both

    @property
    def redelivered(self) -> bool:
        """Whether a client may have had them before."""
        return self.attempts > 0


@dataclass(slots=True)
class Returned:
    """Messages that reached no queue (`no_consumers`: immediate, and none was ready)."""

    publish: Publish
    indexes: Sequence[int]  # in its columns
    no_consumers: bool = False


class Answers(Protocol):
    """An engine, as sessions speak to it."""

    def succeed(self, request: Request, result: Any = None) -> None:  # noqa: ANN401 - as each request says
        """The answer to `request`."""

    def deliver(self, session: int, deliveries: Deliveries) -> None: ...

    def confirm(self, session: int, dispositions: Sequence[PublishDisposition]) -> None:
        """What became of publishes that have numbers, each told once, in the order in which it became known."""

    def returned(self, session: int, returned: Returned) -> None:
        """Sends messages back; called before their confirm."""
