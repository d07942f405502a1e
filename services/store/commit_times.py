"""Metrics of commit groups: how long they took, and their sizes."""

from __future__ import annotations

from services.common.metrics.catalogue.stores import COMMIT_FAILURES, COMMITS, GROUP
from services.common.metrics.histogram import Histogram
from services.common.metrics.meters import Meters


class CommitTimes:
    """One for each store; without `meters` it is never read."""

    def __init__(self, meters: Meters | None = None) -> None:
        self.failures = 0
        self._seconds = meters.histogram(COMMITS) if meters else Histogram(COMMITS.bounds)
        self._sizes = meters.histogram(GROUP) if meters else Histogram(GROUP.bounds)
        if meters:
            meters.number(COMMIT_FAILURES, lambda: self.failures)

    def committed(self, size: int, seconds: float) -> None:
        """A group of so many frames and other writes is on disk."""
        self._sizes.observe(size)
        self._seconds.observe(seconds)
