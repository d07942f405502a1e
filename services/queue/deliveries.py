"""What goes out to one link, as columns; runs that continue one another are one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from services.common.message.weight import weight
from services.queue.entry import Entry
from services.queue.message import Run
from services.rpc.queue_pb2 import TracedDelivery


class DeliveryRun:
    """`count` consecutive messages for one consumer; `shared` properties, or None when each has its own."""

    __slots__ = ("consumer", "count", "redelivered", "run", "shared")

    def __init__(self, consumer: int, count: int, run: Run, redelivered: bool, shared: bytes | None) -> None:
        self.consumer = consumer
        self.count = count
        self.run = run
        self.redelivered = redelivered
        self.shared = shared


class Columns(NamedTuple):
    """Messages in order; `properties` are of those whose run has none that they share."""

    uids: list[int]
    properties: list[bytes]
    bodies: list[bytes]
    runs: list[DeliveryRun]


class Deliveries:
    """Columns of the link's next DeliveryBatch. `wake` is called when it was empty."""

    __slots__ = ("bodies", "properties", "runs", "traced", "uids", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.traced: list[TracedDelivery] = []  # what there is to say of messages that get spans
        self.reset()

    def reset(self) -> None:
        """Begins anew; whoever took the columns has them for itself."""
        self.uids: list[int] = []
        self.properties: list[bytes] = []
        self.bodies: list[bytes] = []
        self.runs: list[DeliveryRun] = []

    @property
    def columns(self) -> Columns:
        """All there is."""
        return Columns(self.uids, self.properties, self.bodies, self.runs)

    def add(
        self,
        consumer: int,
        run: Run,
        redelivered: bool,
        uids: Sequence[int],
        properties: Sequence[bytes] | bytes,
        bodies: Sequence[bytes],
    ) -> None:
        """Adds messages; `properties` is one value for each, or one for all."""
        if not self.runs:
            self.wake()
        self.uids.extend(uids)
        self.bodies.extend(bodies)
        shared = None
        if isinstance(properties, bytes):
            shared = properties
        else:
            self.properties.extend(properties)
        last = self.runs[-1] if self.runs else None
        if (
            last is not None
            and last.consumer == consumer
            and last.run is run
            and last.redelivered is redelivered
            and last.shared == shared
        ):
            last.count += len(uids)
        else:
            self.runs.append(DeliveryRun(consumer, len(uids), run, redelivered, shared))

    def add_entries(self, consumer: int, entries: list[Entry]) -> tuple[bool, int]:
        """Adds entries, grouped by what they have in common; whether some were delivered before, and what all weigh."""
        first, end, again, size = 0, len(entries), False, 0
        while first < end:
            run, redelivered = entries[first].message.run, entries[first].attempts > 0
            again = again or redelivered
            last = first + 1
            while last < end:
                entry = entries[last]
                if entry.message.run is not run or (entry.attempts > 0) is not redelivered:
                    break
                last += 1
            group = [entry.message for entry in (entries if last - first == end else entries[first:last])]
            own = [message.properties for message in group]
            shared = own[0]
            properties = shared if own.count(shared) == len(own) else own
            uids, bodies = [message.uid for message in group], [message.body for message in group]
            self.add(consumer, run, redelivered, uids, properties, bodies)
            size += weight(own, bodies)
            first = last
        return again, size
