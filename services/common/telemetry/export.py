"""Finished spans on their way out of the process: a bounded queue, a thread that empties it, and an account of losses.

The message path only appends. What does not fit, because whoever takes the spans is stuck, is dropped and counted; the
next span that gets out says how many were.
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


class Exporter(Protocol):
    """Where spans go. Called from one thread only, which it may hold up."""

    def export(self, spans: Sequence[Span]) -> None:
        """Returns when they are there; raises whatever says why they are not."""

    def close(self) -> None:
        """Releases what it opened."""


class ExportQueue:
    """The thread, and the exporter, come to be with the first span: a process that traces nothing has neither."""

    def __init__(self, create: Callable[[], Exporter], capacity: int, batch: int, delay: float) -> None:
        """`delay`: seconds in which spans gather unless there are `batch` of them before."""
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
        self._told = 0  # drops that a span has told of
        self._said_at = 0.0

    @property
    def dropped(self) -> int:
        """Spans that nobody will see."""
        return self._refused + self._failed

    def add(self, span: Span) -> None:
        """Never waits and never fails."""
        self.ended += 1
        if len(self._spans) >= self._capacity:
            self._refused += 1
            return
        self._spans.append(span)
        self._some.set()
        if len(self._spans) >= self._batch:
            self._many.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
            self._thread.start()

    def stop(self, seconds: float) -> None:
        """Exports what is left, for so long at most; what is left then is dropped."""
        self._stopping = True
        if self._thread:
            self._some.set()
            self._many.set()
            self._thread.join(seconds)
        if self._spans:
            self._refused += len(self._spans)
            self._spans.clear()
        if self.dropped:
            log.warning("spans were dropped", dropped=self.dropped, exported=self.exported)

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
        except Exception as failure:  # noqa: BLE001 - whatever it is, messages go on and the loss is counted
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
            log.warning("spans are dropped, messages go on", reason=reason, dropped=self.dropped)
