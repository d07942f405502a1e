"""What has to be known before a consumer is attached, and those that wait for it."""

from __future__ import annotations

from services.common.selectors.selector import is_compiled
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.machine.queue import Queue
from services.queue.partitions.partition import Awaited, Partition
from services.rpc import queue_pb2 as pb


class Awaiting:
    """Attaches of one link that wait, each of them for something that is awaited."""

    def __init__(self) -> None:
        self._attaches: dict[int, tuple[Awaited, pb.AttachConsumer]] = {}  # by consumer
        self._claims: dict[int, int] = {}  # by queue that is here: the last one's consumer that says what is held

    def add(self, awaited: Awaited, attach: pb.AttachConsumer) -> None:
        """It waits from now on; one that asked for the same consumer does not any more."""
        self._attaches[attach.consumer] = awaited, attach
        if attach.held and not isinstance(awaited, Partition):  # one that leaves does not come back
            self._claims[attach.queue_id] = attach.consumer

    def of(self, handle: int) -> Awaited | None:
        """What this consumer waits for."""
        found = self._attaches.get(handle)
        return found and found[0]

    def has(self, queue_id: SlotId) -> bool:
        """Whether one to this queue waits."""
        return any(attach.queue_id == queue_id for _, attach in self._attaches.values())

    def claim_of(self, queue_id: SlotId) -> Awaited | None:
        """What that waits for which says what is held of a queue that is here."""
        handle = self._claims.get(queue_id) if self._claims else None
        return None if handle is None else self.of(handle)

    def take(self, attach: pb.AttachConsumer) -> Awaited | None:
        """It waits no more, for what this gives; None if it did not, or has been asked for anew."""
        awaited, latest = self._attaches.get(attach.consumer, (None, None))
        if latest is not attach:
            return None
        del self._attaches[attach.consumer]
        if self._claims.get(attach.queue_id) == attach.consumer:
            del self._claims[attach.queue_id]
        return awaited

    def clear(self) -> None:
        """The link is over."""
        self._attaches.clear()
        self._claims.clear()


def decided_first(host: Host, queue: Queue, attach: pb.AttachConsumer) -> Awaited | None:
    """What has to be decided first: a deletion of the queue, or whether an exclusive consumer returns."""
    if deletion := host.registry.deleting.awaited(SlotId(attach.queue_id)):
        return deletion
    return None if attach.again or attach.stray else host.returning.awaited(queue, attach)


def new_selectors(host: Host, frame: pb.LinkFrame) -> dict[str, None]:
    """Those of a frame and its queues that take their time: a gateway's consumers come to another owner all at once."""
    said = [request.select.selector for request in frame.requests if request.HasField("select")]
    if frame.attaches:
        said += [attach.selector for attach in frame.attaches]
        queues = [host.registry.queues.get(SlotId(attach.queue_id)) for attach in frame.attaches]
        said += [queue.options.default_selector for queue in queues if queue]
    return dict.fromkeys(text for text in said if text and not is_compiled(text))
