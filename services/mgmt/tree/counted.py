"""Which counters of processes each statistic that grows is the sum of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

from services.common.metrics.catalogue import messages as m
from services.common.metrics.catalogue.processes import CPU
from services.common.metrics.instrument import Instrument


class Addend(NamedTuple):
    """An instrument's samples: all of them, or those of one reason; `times` of them are one of the statistic."""

    instrument: Instrument
    why: str = ""
    times: int = 1


Sum = tuple[Addend, ...]
"""Of which a statistic is made."""


def _by_stage(instruments: Iterable[Instrument]) -> Mapping[str, Instrument]:
    return {each.name.rpartition(".")[2]: each for each in instruments}


_QUEUE: Final = _by_stage(m.COUNTED_PER_QUEUE)
_EXCHANGE: Final = _by_stage(m.COUNTED_PER_EXCHANGE)
_CONNECTION: Final = _by_stage(m.COUNTED_PER_CONNECTION)

BROKER: Final[Mapping[str, Sum]] = {
    "messagesIn": (Addend(m.RECEIVED),),
    "messagesOut": (Addend(m.SENT),),
    "bytesIn": (Addend(m.RECEIVED_BYTES),),
    "processCpuTime": (Addend(CPU, times=1000),),
}
QUEUE: Final[Mapping[str, Sum]] = {
    "totalEnqueuedMessages": (Addend(_QUEUE["enqueued"]),),
    "totalExpiredMessages": (Addend(_QUEUE["expired"]),),
}
EXCHANGE: Final[Mapping[str, Sum]] = {
    "messagesIn": (Addend(_EXCHANGE["received"]),),
    "messagesDropped": (Addend(_EXCHANGE["dropped"], "unroutable"), Addend(_EXCHANGE["returned"], "no_route")),
}
CONNECTION: Final[Mapping[str, Sum]] = {
    "messagesIn": (Addend(_CONNECTION["received"]),),
    "messagesOut": (Addend(_CONNECTION["sent"]),),
}
"""Of those that are single there are counters where the settings want that: HOPLINE_METRICS_QUEUES and the like."""

WANTED: Final[Mapping[str, int]] = {
    addend.instrument.prometheus: 2 if addend.instrument.per_object else 0
    for addend in chain(*(each for sums in (BROKER, QUEUE, EXCHANGE, CONNECTION) for each in sums.values()))
}
"""By the instrument's name, how many of its first labels say whose a sample is."""
