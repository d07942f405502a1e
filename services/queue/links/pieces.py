"""Deliveries cut into pieces that fit into one frame each: bodies, properties and facts all count."""

from __future__ import annotations

from collections.abc import Iterator

from services.common.message.alike import objects
from services.common.message.facts import Facts
from services.common.message.weight import BESIDE, FRAME_BYTES, facts_weight
from services.queue.machine.deliveries import Columns, DeliveryRun

_RUN = 16  # bytes of a run's description


def pieces(columns: Columns, carried: int) -> Iterator[Columns]:
    """All deliveries, in order; `carried` is the size of their properties and bodies. A message that is too large for
    any frame is a piece alone.
    """
    if not columns.runs:
        return
    if carried + _beside(columns) <= FRAME_BYTES:
        yield columns
        return
    first = 0
    for end in _ends(columns):
        yield _piece(columns, first, end)
        first = end


def _beside(columns: Columns) -> int:
    size = BESIDE * len(columns.uids) + _RUN * len(columns.runs)
    return size + facts_weight(objects(columns.facts).values())


def _ends(columns: Columns) -> Iterator[int]:
    """Where each piece ends."""
    size, first = 0, 0
    seen: set[Facts] = set()
    for index, (facts, properties, body) in enumerate(
        zip(columns.facts, columns.properties, columns.bodies, strict=True)
    ):
        its = BESIDE + _RUN + len(properties) + len(body) + (0 if facts in seen else facts_weight((facts,)))
        if index > first and size + its > FRAME_BYTES:
            yield index
            size, first = 0, index
            seen.clear()
        size += its
        seen.add(facts)
    yield len(columns.uids)


def _piece(columns: Columns, first: int, end: int) -> Columns:
    own = slice(first, end)
    runs = list(_runs(columns.runs, first, end))
    return Columns(columns.uids[own], columns.facts[own], columns.properties[own], columns.bodies[own], runs)


def _runs(runs: list[DeliveryRun], first: int, end: int) -> Iterator[DeliveryRun]:
    """The runs of the messages from `first` to `end - 1`."""
    at = 0
    for run in runs:
        count = min(at + run.count, end) - max(at, first)
        if count > 0:
            yield DeliveryRun(run.consumer, count, run.attempts, run.acquired)
        at += run.count
