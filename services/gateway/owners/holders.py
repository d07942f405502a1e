"""What clients hold, as owners of queues have to hear of it: who holds which message, and what was said of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink
    from services.rpc import queue_pb2 as pb


class Holder(Protocol):
    """Holds messages of a queue that are not settled: a consumer, or what was taken without one."""

    @property
    def queue_id(self) -> int: ...

    link: QueueLink | None
    """The owner that knows of it, None when there is none."""


class Attached(Holder, Protocol):
    """A consumer, which owners know by a number."""

    @property
    def handle(self) -> int: ...


class Holding(Protocol):
    """A session."""

    def holdings(self) -> Iterator[tuple[Holder, int]]:
        """Who holds which uid."""


class Settled(Protocol):
    """What a transaction has settled."""

    @property
    def holder(self) -> Holder: ...
    @property
    def uid(self) -> int: ...
    @property
    def outcome(self) -> pb.Outcome.ValueType: ...
