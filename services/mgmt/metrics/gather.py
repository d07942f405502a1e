"""Asks every process of the stack what it counts, all at once.

What a process has counted is its own: nothing is kept here, and a process that is gone is told of no more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from services.common.clients.calls import stream
from services.common.containment import contained
from services.common.errors import BrokerError
from services.common.few_lines import FewLines
from services.common.grpc_channel import connect
from services.common.metrics.serving import collected
from services.rpc import metrics_pb2 as pb
from services.rpc.metrics_pb2_grpc import MetricsStub

if TYPE_CHECKING:
    from services.common.metrics.meters import Meters
    from services.rpc.metrics_pb2_grpc import MetricsAsyncStub

DEADLINE: Final = 5.0
"""Seconds in which a process has said all of it; Prometheus waits ten."""

Addresses = Callable[[], Mapping[str, Mapping[str, str]]]
"""By service, the address of each process by its name."""

log = structlog.get_logger()


@dataclass(slots=True)
class ProcessMetrics:
    """By one process, or by none: then there are no families."""

    service: str
    process: str
    answered: bool = False
    families: list[pb.Family] = field(default_factory=list)

    def take(self, said: pb.Collected) -> None:
        """A portion. The process names itself: that is how the store's name becomes known."""
        self.process = said.process
        self.families.extend(said.families)


def _each_once(told: Iterable[ProcessMetrics]) -> list[ProcessMetrics]:
    """Who begins again where a killed one was answers for both, as long as that one is believed alive."""
    found = {(each.service, each.process): each for each in sorted(told, key=lambda each: each.answered)}
    return [found[who] for who in sorted(found)]


class Gathering:
    """`addresses` are those of the others; `own` is what mgmt counts itself."""

    def __init__(self, addresses: Addresses, own: Meters, ready: Callable[[], Awaitable[None]]) -> None:
        """`ready` returns when the addresses are known; raises BrokerError where that takes too long."""
        self._addresses = addresses
        self._own = own
        self._ready = ready
        self._few = FewLines()

    async def gather(self, *, per_object: bool, names: Collection[str] = ()) -> list[ProcessMetrics]:
        """In the order of their names, each once. One that does not answer in time is in it, without families.

        `names` are of the instruments that are wanted, if not all; a process of a former release tells all.
        """
        with contextlib.suppress(BrokerError):  # without the store there are those that were known before
            await self._ready()
        request = pb.CollectRequest(per_object=per_object, names=names)
        asked = [self._of(*each, request) for each in self._all()]
        told = await asyncio.gather(self._here(request), *asked)
        return _each_once(told)

    def _all(self) -> Iterator[tuple[str, str, str]]:
        for service, processes in self._addresses().items():
            for process, address in processes.items():
                yield service, process, address

    async def _here(self, request: pb.CollectRequest) -> ProcessMetrics:
        told = ProcessMetrics(self._own.service, self._own.process, answered=True)
        async for said in collected(self._own, per_object=request.per_object, names=set(request.names)):
            told.take(said)
        return told

    async def _of(self, service: str, process: str, address: str, request: pb.CollectRequest) -> ProcessMetrics:
        told = ProcessMetrics(service, process)
        channel = connect(address)
        stub: MetricsAsyncStub = MetricsStub(channel)
        try:
            async for said in stream(stub.Collect(request, timeout=DEADLINE)):
                told.take(said)
            told.answered = True
        except BrokerError as failure:
            told.families.clear()  # half of it would look like all of it
            self._few.say(log.info, "a process does not say what it counts", process=process, reason=failure.text)
        except Exception as fault:  # noqa: BLE001 - the others have said theirs
            told.families.clear()
            contained("collecting metrics", fault, process=process)
        finally:
            await channel.close()
        return told


def samples_of(family: pb.Family) -> Iterator[tuple[tuple[str, ...], float]]:
    """Of counters and gauges: the labels' values and the value of each."""
    return zip(labels_of(family), family.values, strict=True)


def labels_of(family: pb.Family) -> Iterator[tuple[str, ...]]:
    """The values of the labels of each sample."""
    count, values = len(family.labels), family.label_values
    for index in range(len(family.values)):
        yield tuple(values[index * count : (index + 1) * count])
