"""What a queue process measures: read from its queues when asked, so that no message pays for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from services.common.clock import monotonic
from services.common.metrics.catalogue import messages as m
from services.common.metrics.catalogue import processes as p
from services.common.metrics.catalogue import queues as q
from services.common.metrics.each import CountedQueues
from services.common.metrics.meters import AT_ONCE
from services.common.topology.slots import FIRST, SlotName

if TYPE_CHECKING:
    from services.common.clients.topology import TopologyClient
    from services.common.metrics.histogram import Histogram
    from services.common.metrics.instrument import Instrument
    from services.common.metrics.meters import Labels, Meters
    from services.queue.host import Host
    from services.queue.journal.writer import Journal
    from services.queue.machine.queue import Queue
    from services.queue.partitions.registry import Registry
    from services.rpc import store_pb2
    from services.rpc.router_pb2 import Forget, QueueDefinition

_MESSAGES = "messages"


def measure_host(meters: Meters, host: Host) -> None:
    """Its queues, partitions and memory."""
    sums = Sums(host.registry)
    meters.surveys.append(sums.survey)
    meters.number(m.READY, lambda: sums.ready)
    meters.number(m.UNSETTLED, lambda: sums.unsettled)
    meters.number(q.CONSUMERS, lambda: sums.consumers)
    meters.number(q.QUEUES, lambda: len(host.registry.queues) - sums.further)
    meters.read(q.PARTITIONS, lambda: _partitions(host.registry))
    meters.number(q.FLOWING, lambda: bool(host.gate.full))
    meters.number(p.MEMORY, lambda: host.account.used, _MESSAGES)
    meters.number(p.MEMORY_LIMIT, lambda: host.gate.limit, _MESSAGES)
    for instrument, value in _PER_QUEUE.items():
        meters.read(instrument, _reader(host.registry, sums, value))


@dataclass(slots=True)
class Sums:
    """Over all queues, some hundred in one turn of the loop; of those that come meanwhile, the next time.

    `further` slots are not the first of their queues, which are `spread`, as their labels are.
    """

    registry: Registry
    ready: int = field(default=0, init=False)
    unsettled: int = field(default=0, init=False)
    consumers: int = field(default=0, init=False)
    further: int = field(default=0, init=False)
    spread: set[Labels] = field(default_factory=set, init=False)

    async def survey(self) -> None:
        """Finds them out."""
        ready = unsettled = consumers = further = 0
        spread: set[Labels] = set()
        for some in _portions(self.registry):
            ready += sum(queue.ready_count for queue in some)
            unsettled += sum(len(queue.unsettled) for queue in some)
            consumers += sum(len(queue.consumers) for queue in some)
            its = [_labels(queue) for queue in some if self._is_further(queue)]
            spread.update(its)
            further += len(its)
            await asyncio.sleep(0)
        self.ready, self.unsettled, self.consumers = ready, unsettled, consumers
        self.further, self.spread = further, spread

    def _is_further(self, queue: Queue) -> bool:
        definition = self.registry.definitions.get(queue.options.queue_id)
        return definition is not None and definition.slot != FIRST


def _portions(registry: Registry) -> Iterator[list[Queue]]:
    left = iter(list(registry.queues))
    while numbers := list(islice(left, AT_ONCE)):
        yield [queue for number in numbers if (queue := registry.queues.get(number))]


def _partitions(registry: Registry) -> list[tuple[Labels, float]]:
    states = Counter(partition.state.name.lower() for partition in registry.partitions.values())
    return [((state,), states[state]) for state in ("recovering", "serving", "leaving", "written")]


_PER_QUEUE: dict[Instrument, Callable[[Queue], int]] = {
    m.QUEUE_READY: lambda queue: queue.ready_count,
    m.QUEUE_UNSETTLED: lambda queue: len(queue.unsettled),
    m.QUEUE_BYTES: lambda queue: queue.holding.size,
    m.QUEUE_CONSUMERS: lambda queue: len(queue.consumers),
}


def _labels(queue: Queue) -> Labels:
    return queue.options.virtual_host, queue.options.name


def _reader(
    registry: Registry, sums: Sums, value: Callable[[Queue], int]
) -> Callable[[], Iterator[tuple[Labels, float]]]:
    """Of each queue one sample, whatever slots of it are here, as there is one of each process."""

    def read() -> Iterator[tuple[Labels, float]]:
        spread = dict.fromkeys(sums.spread, 0)
        for some in _portions(registry):
            for queue in some:
                if (labels := _labels(queue)) in spread:
                    spread[labels] += value(queue)
                else:
                    yield labels, value(queue)
        yield from spread.items()

    return read


class MeteredJournal:
    """A Journal that notes how long each frame took; `took` may be all that is done for it."""

    def __init__(self, journal: Journal, took: Histogram) -> None:
        self._journal = journal
        self._took = took

    def append(self, frame: store_pb2.JournalFrame) -> asyncio.Future[store_pb2.JournalAck]:
        """As Journal says."""
        began, answer = monotonic(), self._journal.append(frame)
        answer.add_done_callback(lambda _: self._took.observe(monotonic() - began))
        return answer


def count_each(meters: Meters, topology: TopologyClient) -> CountedQueues:
    """Counts of each queue, which go with it. What is told of it later, as of dead letters that were on their way, goes
    when somebody reads.
    """
    counted = CountedQueues(meters)
    topology.listeners.append(Deleted(counted))

    async def forget() -> None:
        counted.keep(lambda labels: SlotName(labels[0], labels[1]) in topology.by_name)

    meters.surveys.append(forget)
    return counted


class Deleted:
    """Listens to the topology client: what is counted of a queue goes with it, and one of its name begins at 0."""

    def __init__(self, counted: CountedQueues) -> None:
        self._counted = counted

    def on_queue(self, definition: QueueDefinition) -> None:
        """Counted when there is something to count."""

    def on_queue_changed(self, definition: QueueDefinition) -> None:
        """It is counted as before."""

    def on_queue_deleted(self, definition: QueueDefinition) -> None:
        self._counted.forget(definition.virtual_host, definition.name)

    def on_forget(self, forget: Forget) -> None:
        """Routes are not counted."""

    def on_reset(self) -> None:
        """Queues that are gone are told one by one."""

    def on_virtual_host_deleted(self, name: str) -> None:
        """As above."""

    def on_place(self) -> None:
        """Nothing waits for that."""
