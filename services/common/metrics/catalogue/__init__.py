"""All instruments, in the order of `docs/metrics.md`; each is in the file of the service that measures it."""

from __future__ import annotations

from typing import Final

from services.common.metrics.catalogue import clients, messages, mgmt, processes, queues, stores
from services.common.metrics.instrument import Instrument

SECTIONS: Final[tuple[tuple[str, tuple[Instrument, ...]], ...]] = (
    ("Messages", messages.ALL),
    ("Single queues", messages.PER_QUEUE),
    ("Single exchanges", messages.COUNTED_PER_EXCHANGE),
    ("Single connections", messages.PER_CONNECTION),
    ("Clients", clients.ALL),
    ("Queues and partitions", queues.ALL),
    ("Topology and store", stores.ALL),
    ("Management", mgmt.ALL),
    ("Every process", processes.ALL),
)
