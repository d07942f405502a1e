"""Who hears what the links to queue processes say besides what became of messages."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink
    from services.rpc import queue_pb2 as pb


class FrameListener(Protocol):
    """Gets what the publisher itself does not use of the links."""

    def link_up(self, link: QueueLink) -> None: ...

    def link_down(self, link: QueueLink) -> None: ...

    def moved(self, link: QueueLink, partitions: AbstractSet[int]) -> None:
        """The terms in which the process at the other end had these are over, whatever it still says of them."""

    def received(self, link: QueueLink, frame: pb.QueueFrame) -> None: ...

    def assignment_changed(self) -> None: ...
