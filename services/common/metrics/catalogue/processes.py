"""Metrics of every process; those of the operating system have their usual names."""

from __future__ import annotations

from typing import Final

from services.common.metrics.instrument import counter, gauge

MEMORY: Final = gauge("hopline.memory.used", "By", "Memory taken by messages, or by what comes in.", "account")
MEMORY_LIMIT: Final = gauge("hopline.memory.limit", "By", "Memory that it may take before clients wait.", "account")
ROWS: Final = counter("hopline.ledger.rows", "{row}", "Rows of the record of messages that were written.")
ROWS_DROPPED: Final = counter(
    "hopline.ledger.rows.dropped", "{row}", "Rows of the record that were given up: NATS was away."
)
EVENTS_DROPPED: Final = counter("hopline.events.dropped", "{event}", "Events that were given up: NATS was away.")
SPANS: Final = counter("hopline.spans.ended", "{span}", "Spans of messages that are traced.")
SPANS_DROPPED: Final = counter("hopline.spans.dropped", "{span}", "Spans that could not be exported.")
CPU: Final = counter("process.cpu.time", "s", "Time of processors.", prometheus="process_cpu_seconds_total")
RESIDENT: Final = gauge("process.memory.usage", "By", "Resident memory.", prometheus="process_resident_memory_bytes")
FILES: Final = gauge("process.open_file_descriptor.count", "{count}", "Open files.", prometheus="process_open_fds")
FILES_LIMIT: Final = gauge(
    "process.open_file_descriptor.limit", "{count}", "Open files at most.", prometheus="process_max_fds"
)
STARTED: Final = gauge(
    "process.start_time", "s", "When it started, since the Unix epoch.", prometheus="process_start_time_seconds"
)

ALL: Final = (
    MEMORY, MEMORY_LIMIT, ROWS, ROWS_DROPPED, EVENTS_DROPPED, SPANS, SPANS_DROPPED, CPU, RESIDENT, FILES, FILES_LIMIT,
    STARTED,
)  # fmt: skip
