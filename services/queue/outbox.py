"""What a link has to say next: collected while a write is under way, then one frame."""

from __future__ import annotations

from collections.abc import Callable

from services.queue.deliveries import Deliveries, DeliveryRun
from services.rpc import queue_pb2 as pb

# Bodies in one frame; a frame must stay well below what gRPC is told to accept.
_BYTES_AT_MOST = 16 << 20


class Outbox:
    """`wake` is called when there is something to say after there was nothing."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.deliveries = Deliveries(wake)
        self._wake = wake
        self._frame = pb.QueueFrame()
        self._begun = False

    @property
    def frame(self) -> pb.QueueFrame:
        """The next frame, but for its deliveries; to be added to."""
        if not self._begun:
            self._begun = True
            self._wake()
        return self._frame

    def settled(self, number: int) -> None:
        """The settlements of a frame are safe; said when there is something else to say."""
        self._frame.settled.append(number)

    @property
    def pending(self) -> bool:
        """Whether there is something to say."""
        return self._begun or bool(self.deliveries.runs)

    def take(self) -> pb.QueueFrame | None:
        """The next frame, or None when there is nothing to say."""
        deliveries = self.deliveries
        if not self.pending:
            return None
        frame = self._frame
        self._frame, self._begun = pb.QueueFrame(), False
        if deliveries.runs:
            _encode_deliveries(deliveries, frame.deliveries)
        if deliveries.runs:
            self._postpone(frame)
        return frame

    def _postpone(self, frame: pb.QueueFrame) -> None:
        """Deliveries are left over: the end of consumers must not overtake them."""
        self._frame.detached.extend(frame.detached)
        self._frame.cancelled.extend(frame.cancelled)
        del frame.detached[:]
        del frame.cancelled[:]
        self._begun = True


def _encode_deliveries(deliveries: Deliveries, batch: pb.DeliveryBatch) -> None:
    uids, properties, bodies, runs = deliveries.uids, deliveries.properties, deliveries.bodies, deliveries.runs
    deliveries.reset()
    count = _fitting(bodies)
    if count < len(bodies):
        now, later = _split(runs, count)
        own = sum(run.count for run in now if run.shared is None)
        deliveries.uids, deliveries.properties = uids[count:], properties[own:]
        deliveries.bodies, deliveries.runs = bodies[count:], later
        uids, properties, bodies, runs = uids[:count], properties[:own], bodies[:count], now
    if deliveries.traced:
        # All of them, whatever is left for the next frame: they may come early, and never late.
        batch.traced.extend(deliveries.traced)
        deliveries.traced.clear()
    batch.uids.extend(uids)
    batch.properties.extend(properties)
    batch.bodies.extend(bodies)
    for run in runs:
        encode_run(run, batch)


def _fitting(bodies: list[bytes]) -> int:
    """How many bodies one frame may hold, at least one."""
    if sum(map(len, bodies)) <= _BYTES_AT_MOST:
        return len(bodies)
    total = 0
    for index, body in enumerate(bodies):
        total += len(body)
        if total > _BYTES_AT_MOST:
            return max(index, 1)
    return len(bodies)


def _split(runs: list[DeliveryRun], count: int) -> tuple[list[DeliveryRun], list[DeliveryRun]]:
    """The runs of the first `count` messages, and those of the rest."""
    now: list[DeliveryRun] = []
    for index, run in enumerate(runs):
        if run.count > count:
            if count:
                now.append(DeliveryRun(run.consumer, count, run.run, run.redelivered, run.shared))
            rest = DeliveryRun(run.consumer, run.count - count, run.run, run.redelivered, run.shared)
            return now, [rest, *runs[index + 1 :]]
        now.append(run)
        count -= run.count
    return now, []


def encode_run(run: DeliveryRun, batch: pb.DeliveryBatch) -> None:
    """Adds a run's description to a batch."""
    facts = run.run
    batch.runs.add(
        consumer=run.consumer,
        count=run.count,
        exchange=facts.exchange,
        routing_key=facts.routing_key,
        redelivered=run.redelivered,
        format=facts.format,
        shared_properties=run.shared,
    )
