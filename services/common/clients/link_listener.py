"""Listens to the link to one queue process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from services.common.topology.slots import SlotId

if TYPE_CHECKING:
    from services.common.clients.outbound import Attempt
    from services.common.clients.queue_link import QueueLink
    from services.rpc import queue_pb2 as pb


class LinkListener(Protocol):
    """Uses a link. Called from the link's reader, never while the link is being written to."""

    def link_up(self, link: QueueLink) -> None:
        """The stream is open: attach consumers, send what was kept."""

    def link_down(self, link: QueueLink, attempts: list[Attempt]) -> None:
        """The stream broke; these attempts were sent or waiting, and are not done. Call `take_unsettled` now."""

    def done(self, attempt: Attempt) -> None:
        """Every message that was not refused is now as safe as its durability asks."""

    def refused(self, link: QueueLink, attempt: Attempt, queue_id: SlotId, indexes: Sequence[int], reason: int) -> None:
        """Called before `done`: a queue does not take the attempt's messages at these indexes."""

    def received(self, link: QueueLink, frame: pb.QueueFrame, bodies: list[bytes]) -> None:
        """Everything else that a frame carries; `bodies` are those of its deliveries, which it need not have itself."""
