"""Metrics of routers and the store."""

from __future__ import annotations

from typing import Final

from services.common.metrics.instrument import counter, gauge, histogram

WRITES: Final = gauge("hopline.router.writes", "", "1 for the router that changes the topology, 0 for its followers.")
DEFINED: Final = gauge("hopline.topology.objects", "{object}", "Virtual hosts, exchanges, queues and bindings.", "kind")
CHANGES: Final = counter(
    "hopline.topology.changes", "{change}", "Virtual hosts, exchanges, queues and bindings made or deleted.", "change"
)
STORE_WRITES: Final = gauge(
    "hopline.store.writes", "", "1 for the store process that writes, 0 for those that stand by."
)
COMMITS: Final = histogram(
    "hopline.store.commit.duration",
    "s",
    "Time of a group of the journal, from when it is made until it is on disk.",
    (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
GROUP: Final = histogram(
    "hopline.store.commit.size",
    "{work}",
    "Frames and other writes of a group.",
    (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
)
COMMIT_FAILURES: Final = counter("hopline.store.commit.failures", "{attempt}", "Groups that could not be written.")
LEASES: Final = counter("hopline.leases.changes", "{lease}", "Leases that were acquired, released, lost.", "change")
DISK_FREE: Final = gauge("hopline.store.disk.free", "By", "Room that is left on the disk of the store.")
DISK_SIZE: Final = gauge("hopline.store.disk.limit", "By", "The size of the disk of the store.")
DISK_LOW: Final = gauge("hopline.store.disk.low", "", "1 while publishers wait for room on the store's disk, else 0.")
CONFIGURED: Final = counter("hopline.configuration.changes", "{change}", "Users, ports and the like that were changed.")

ALL: Final = (
    WRITES, DEFINED, CHANGES, STORE_WRITES, COMMITS, GROUP, COMMIT_FAILURES, LEASES, DISK_FREE, DISK_SIZE, DISK_LOW,
    CONFIGURED,
)  # fmt: skip
