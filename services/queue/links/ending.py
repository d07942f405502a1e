"""A consumer that its queue does not serve any more, though both are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink


def end(link: PeerLink, handle: int, reason: pb.Reason.ValueType, now: int, text: str = "") -> None:
    """Cancels it, for this reason; what it holds stays its client's to settle."""
    if found := link.consumers.get(handle):
        consumer, queue = found
        queue.consumers.remove(consumer)
        link.ended(consumer, reason, text)
        queue.dispatch(now)  # it may have been the single active one
