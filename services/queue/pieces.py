"""Deliveries cut into what one frame may carry: by all that they weigh, properties and runs' descriptions too."""

from __future__ import annotations

from collections.abc import Iterator

from services.common.message.weight import BESIDE, FRAME_BYTES
from services.queue.deliveries import Columns, DeliveryRun

_RUN = 64  # bytes of a run's description beside its strings


def pieces(columns: Columns) -> Iterator[Columns]:
    """All of them, in order. A message that is too large for any frame is a piece alone."""
    if columns.runs and _all_fit(columns):
        yield columns
        return
    begin = begin_own = at = own = size = 0
    runs: list[DeliveryRun] = []
    for run in columns.runs:
        left = run.count
        while left:
            size += _description(run)
            many, weighs = _fitting(columns, run, at, own, left, FRAME_BYTES - size)
            if not many and runs:
                yield _piece(columns, begin, at, begin_own, own, runs)
                begin, begin_own, size, runs = at, own, 0, []
                continue
            many = many or 1
            runs.append(DeliveryRun(run.consumer, many, run.run, run.redelivered, run.shared))
            size, at, own, left = size + weighs, at + many, own + (many if run.shared is None else 0), left - many
    if runs:
        yield _piece(columns, begin, at, begin_own, own, runs)


def _all_fit(columns: Columns) -> bool:
    """As nearly always."""
    size = BESIDE * len(columns.uids) + sum(map(len, columns.bodies)) + sum(map(len, columns.properties))
    return size + sum(map(_description, columns.runs)) <= FRAME_BYTES


def _piece(columns: Columns, begin: int, at: int, begin_own: int, own: int, runs: list[DeliveryRun]) -> Columns:
    if begin == 0 and at == len(columns.uids):
        return columns._replace(runs=runs)
    return Columns(columns.uids[begin:at], columns.properties[begin_own:own], columns.bodies[begin:at], runs)


def _description(run: DeliveryRun) -> int:
    return _RUN + len(run.run.exchange) + len(run.run.routing_key) + len(run.shared or b"")


def _fitting(columns: Columns, run: DeliveryRun, at: int, own: int, left: int, room: int) -> tuple[int, int]:
    """How many of the next `left` messages have room, and what those weigh; of none, what the first one does."""
    bodies = columns.bodies[at : at + left]
    properties = columns.properties[own : own + left] if run.shared is None else []
    total = sum(map(len, bodies)) + sum(map(len, properties)) + BESIDE * left
    if total <= room:
        return left, total
    taken = 0
    for index, body in enumerate(bodies):
        weighs = BESIDE + len(body) + (len(properties[index]) if properties else 0)
        if taken + weighs > room:
            return index, taken or weighs
        taken += weighs
    return left, taken
