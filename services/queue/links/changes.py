"""What a gateway says of deliveries besides their outcome (AMQP 1.0, part 3, 3.4.5).

Where it is more than is kept the messages go back without it, and the consumer that has said it is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from services.queue.links.ending import end
from services.queue.machine.modifying import UNCHANGED, Change
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.host import Host
    from services.queue.links.link import PeerLink
    from services.queue.machine.queue import Queue


def no_room(host: Host, said: pb.Settle) -> str:
    """Why annotations are not kept at the moment, whatever they are; or nothing. Publishers are held back then."""
    full = host.gate.full
    if said.annotations and (full.everywhere or said.queue_id in full.queue_ids):
        return "messages that wait take too much memory for annotations"
    return ""


def is_changed(said: pb.Settle) -> bool:
    """Whether anything is; the consumer that says so may have ended, also before another owner was told."""
    return bool(said.annotations) or said.not_again


def settle_changed(
    host: Host, link: PeerLink, queue: Queue, said: pb.Settle, settle: Callable[[Change], str], no: str = ""
) -> None:
    """Has `settle` do it, which gives why not all of the change could be heeded; without annotations where `no` says
    why. Nothing is delivered before that.
    """
    queue.giving_back.hold_up()
    try:
        change = _change_of(link, said)
        if why := settle(change._replace(annotations=b"") if no else change) or no:
            end(host, link, said.consumer, pb.LIMIT, why)
    finally:
        queue.giving_back.go_on(host.now())


def _change_of(link: PeerLink, said: pb.Settle) -> Change:
    """As their queue takes it. A consumer that is gone is given nothing anyway."""
    if not is_changed(said):
        return UNCHANGED
    found = link.consumers.get(said.consumer) if said.not_again else None
    return Change(said.annotations, found[0] if found and found[1].options.queue_id == said.queue_id else None)
