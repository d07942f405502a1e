"""What goes out to one link, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from services.common.message.facts import Facts
from services.common.message.weight import weight
from services.queue.machine.body import Body
from services.queue.machine.entry import Entry
from services.rpc.queue_pb2 import TracedDelivery


class DeliveryRun:
    """`count` consecutive messages for one consumer; of each so many `attempts` came back before, and with those that
    were only given back it was `acquired` so often, where clients are told.
    """

    __slots__ = ("acquired", "attempts", "consumer", "count")

    def __init__(self, consumer: int, count: int, attempts: int, acquired: int = 0) -> None:
        self.consumer = consumer
        self.count = count
        self.attempts = attempts
        self.acquired = acquired

    @property
    def redelivered(self) -> bool:
        """Whether somebody may have had them."""
        return self.attempts > 0


class Columns(NamedTuple):
    """Messages in order."""

    uids: list[int]
    facts: list[Facts]
    properties: list[bytes]
    bodies: list[Body]
    runs: list[DeliveryRun]


class Deliveries:
    """Columns of the link's next DeliveryBatch. `wake` is called when it was empty."""

    __slots__ = ("bodies", "carried", "facts", "properties", "runs", "traced", "uids", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.traced: list[TracedDelivery] = []  # what there is to say of messages that get spans
        self.reset()

    def reset(self) -> None:
        """Begins anew; whoever took the columns has them for itself."""
        self.uids: list[int] = []
        self.facts: list[Facts] = []
        self.properties: list[bytes] = []
        self.bodies: list[Body] = []
        self.runs: list[DeliveryRun] = []
        self.carried = 0  # bytes of properties and bodies

    @property
    def columns(self) -> Columns:
        """All there is."""
        return Columns(self.uids, self.facts, self.properties, self.bodies, self.runs)

    def add(
        self,
        consumer: int,
        attempts: int,
        uids: Sequence[int],
        facts: Sequence[Facts],
        properties: Sequence[bytes],
        bodies: Sequence[Body],
        carried: int,
        acquired: int = 0,
    ) -> None:
        """Adds messages for a consumer; their properties and bodies weigh what is `carried`."""
        if not self.runs:
            self.wake()
        self.uids.extend(uids)
        self.facts.extend(facts)
        self.properties.extend(properties)
        self.bodies.extend(bodies)
        self.carried += carried
        last = self.runs[-1] if self.runs else None
        if last and (last.consumer, last.attempts, last.acquired) == (consumer, attempts, acquired):
            last.count += len(uids)
        else:
            self.runs.append(DeliveryRun(consumer, len(uids), attempts, acquired))

    def add_entries(
        self, consumer: int, entries: list[Entry], acquired_of: Callable[[Entry], int] | None = None
    ) -> tuple[bool, int]:
        """Adds entries; whether some were delivered before, and what all weigh. `acquired_of`: see DeliveryRun."""
        first, end, again, size = 0, len(entries), False, 0
        while first < end:
            attempts, acquired = entries[first].attempts, acquired_of(entries[first]) if acquired_of else 0
            again = again or attempts > 0
            last = first + 1
            while (
                last < end
                and entries[last].attempts == attempts
                and (acquired_of is None or acquired_of(entries[last]) == acquired)
            ):
                last += 1
            group = [entry.message for entry in (entries if last - first == end else entries[first:last])]
            properties, bodies = [message.properties for message in group], [message.body for message in group]
            uids, facts = [message.uid for message in group], [message.facts for message in group]
            carried = weight(properties, bodies)
            self.add(consumer, attempts, uids, facts, properties, bodies, carried, acquired)
            size += carried
            first = last
        return again, size
