"""Metrics of queue processes: queues, consumers, partitions, and writes to the journal."""

from __future__ import annotations

from typing import Final

from services.common.metrics.instrument import counter, gauge, histogram

QUEUES: Final = gauge("hopline.queues", "{queue}", "Queues that the process serves.")
CONSUMERS: Final = gauge("hopline.consumers", "{consumer}", "Consumers of these queues.")
PARTITIONS: Final = gauge("hopline.partitions.held", "{partition}", "Partitions that the process holds.", "state")
TAKEN_OVER: Final = counter("hopline.partitions.taken_over", "{partition}", "Partitions read back after another owner.")
HANDED_OVER: Final = counter("hopline.partitions.handed_over", "{partition}", "Partitions given up in good order.")
FLOWING: Final = gauge("hopline.publishers.held_back", "", "1 while publishers wait for memory of messages, else 0.")
JOURNAL: Final = histogram(
    "hopline.journal.write.duration",
    "s",
    "From when a frame was given to the store until it was on disk.",
    (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)

ALL: Final = (QUEUES, CONSUMERS, PARTITIONS, TAKEN_OVER, HANDED_OVER, FLOWING, JOURNAL)
