"""Exports finished spans: a bounded queue, a thread that empties it, and an account of losses.

The message path only appends. Spans that do not fit, because the exporter is stuck, are dropped and counted; the next
span that is exported says how many.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from services.common.clock import monotonic
from services.common.telemetry.conventions import SPANS_DROPPED
from services.common.telemetry.span import Span

log = structlog.get_logger()

_SAY_EVERY = 60.0  # seconds between lines about the same trouble
_DO = "see that the collector takes them, or the disk has room; or trace fewer messages"


class Exporter(Protocol):
    """The destination of spans. Called from one thread only, which it may block."""

    def export(self, spans: Sequence[Span]) -> None:
        """Returns when the spans have arrived; raises an error that says why they have not."""

    def close(self) -> None:
        """Releases its resources."""


class ExportQueue:
    """The thread and the exporter are made at the first span: a process that traces nothing has neither."""

    def __init__(self, create: Callable[[], Exporter], capacity: int, batch: int, delay: float) -> None:
        """`delay`: seconds for which spans collect, unless there are `batch` of them before."""
        self.ended = 0
        self.exported = 0
        self._refused = 0  # by the queue, counted where spans are added
        self._failed = 0  # by the exporter, counted in the thread
        self._create = create
        self._capacity = capacity
        self._batch = batch
        self._delay = delay
        self._spans: deque[Span] = deque()
        self._thread: threading.Thread | None = None
        self._some = threading.Event()
        self._many = threading.Event()
        self._stopping = False
        self._told = 0  # drops that an exported span has reported
        self._said_at = 0.0

    @property
    def dropped(self) -> int:
        """Spans that are lost."""
        return self._refused + self._failed

    def add(self, span: Span) -> None:
        """Never waits and never fails."""
        self.ended += 1
        if len(self._spans) >= self._capacity:
            self._refused += 1
            return
        self._spans.append(span)
        # To set what is set takes a lock, and time for each span; the thread looks for spans after it has cleared them.
        if not self._some.is_set():
            self._some.set()
        if len(self._spans) >= self._batch and not self._many.is_set():
            self._many.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
            self._thread.start()

    def stop(self, seconds: float) -> None:
        """Exports what is left for `seconds` at most, and drops the rest."""
        self._stopping = True
        if self._thread:
            self._some.set()
            self._many.set()
            self._thread.join(seconds)
        if self._spans:
            self._refused += len(self._spans)
            self._spans.clear()
        if self.dropped:
            log.warning("spans were dropped", dropped=self.dropped, exported=self.exported, do=_DO)

    def _run(self) -> None:
        exporter: Exporter | None = None
        while True:
            stopping = self._stopping
            if not stopping:
                self._some.wait()
                self._many.wait(self._delay)
                self._some.clear()
                self._many.clear()
            while self._spans:
                exporter = self._export(exporter)
            if stopping:
                break
        if exporter:
            exporter.close()

    def _export(self, exporter: Exporter | None) -> Exporter | None:
        spans = [self._spans.popleft() for _ in range(min(len(self._spans), self._batch))]
        dropped = self.dropped
        if dropped > self._told and spans:
            spans[0].attributes[SPANS_DROPPED] = dropped - self._told
        try:
            exporter = exporter or self._create()
            exporter.export(spans)
        except Exception as failure:  # noqa: BLE001 - whatever the failure, messages go on and the loss is counted
            self._failed += len(spans)
            self._say(repr(failure))
        else:
            self.exported += len(spans)
            self._told = dropped
            if self._refused:
                self._say("more spans than can be exported")
        return exporter

    def _say(self, reason: str) -> None:
        now = monotonic()
        if not self._said_at or now - self._said_at > _SAY_EVERY:
            self._said_at = now
            log.warning("spans are dropped, messages go on", reason=reason, dropped=self.dropped, do=_DO)
