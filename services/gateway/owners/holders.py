"""What clients hold, as owners of queues are told of it: holders, their messages, and settlements in transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from services.common.topology.slots import SlotId

if TYPE_CHECKING:
    from services.common.clients.change import Change
    from services.common.clients.queue_link import QueueLink
    from services.rpc import queue_pb2 as pb


class Holder(Protocol):
    """Holds unsettled messages of a queue: a consumer, or a session's gets from the queue."""

    @property
    def queue_id(self) -> SlotId: ...

    link: QueueLink | None
    """The owner that knows what it holds; None when there is none."""


class AttachedConsumer(Holder, Protocol):
    """A consumer, which owners know by its handle."""

    @property
    def handle(self) -> int: ...


class Holding(Protocol):
    """A session."""

    def holdings(self) -> Iterator[tuple[Holder, int]]:
        """Holders, each with a uid that it holds."""


class Settled(Protocol):
    """A settlement of a transaction."""

    @property
    def holder(self) -> Holder: ...
    @property
    def uid(self) -> int: ...
    @property
    def outcome(self) -> pb.Outcome.ValueType: ...
    @property
    def change(self) -> Change: ...
