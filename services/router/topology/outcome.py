"""The answer to a change."""

from __future__ import annotations

from typing import NamedTuple

from services.common.topology.definitions import Queue


class Outcome(NamedTuple):
    """Of a change that was carried out, or that had nothing to do."""

    queue: Queue | None = None  # of queue.declare
    created: bool = False
