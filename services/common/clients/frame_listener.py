"""Listens to everything that queue processes say over their links, besides the outcome of published messages."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink
    from services.rpc import queue_pb2 as pb


class FrameListener(Protocol):
    """Gets the frames and events of links that the publisher itself does not use."""

    def link_up(self, link: QueueLink) -> None: ...

    def link_down(self, link: QueueLink) -> None: ...

    def moved(self, link: QueueLink, partitions: AbstractSet[int]) -> None:
        """The epochs in which that process owned these partitions have ended, whatever it still says of them."""

    def received(self, link: QueueLink, frame: pb.QueueFrame, bodies: list[bytes]) -> None: ...

    def assignment_changed(self) -> None: ...

    def has_told(self, partition: int) -> bool:
        """Whether its owner has been told what clients hold; until then, what others were sent does not go there.

        `Publisher.unpark_soon` is called when it has.
        """
