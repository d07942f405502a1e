"""A consumer that its queue does not serve any more, though both are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.host import Host
    from services.queue.links.link import PeerLink


def end(host: Host, link: PeerLink, handle: int, reason: pb.Reason.ValueType, text: str = "") -> None:
    """Cancels it, for this reason; what it holds stays its client's to settle."""
    if found := link.consumers.get(handle):
        consumer, queue = found
        now = host.now()
        with link.on_the_way.cancelling(consumer, queue):
            is_over = queue.detach(consumer, now)
            link.ended(consumer, reason, text)
        if is_over:
            host.delete_soon(queue.options.queue_id)
        else:
            queue.dispatch(now)  # it may have been the single active one
