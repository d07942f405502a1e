"""Batches of messages that one hour saw, as arrays: what `generate.py` makes rows of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.common.uid import SEQUENCE_BITS

Ints = NDArray[np.int64]

ORIGINS = (1, 2)
HOUR_US = 3_600_000_000
_LATE = 0.01  # share of batches that wait in their queue for hours
_LONGEST_WAIT = 6  # hours
_LARGEST_BATCH = 4
_SCATTERED = 0.01  # share of the last stage's rows that speak of messages far apart: acknowledged out of order
_FARTHEST = 5_000  # uids: as many as a consumer may have unacknowledged, or so

# (stage, service, microseconds after `received`)
STAGES = (
    ("received", "gateway", 0),
    ("routed", "gateway", 40),
    ("enqueued", "queue", 400),
    ("persisted", "queue", 2_500),
    ("confirmed", "gateway", 3_000),
    ("delivered", "queue", 3_200),
    ("sent", "gateway", 3_600),
    ("settled", "queue", 9_000),
)
_FIRST_LATE = 5  # `delivered` and what follows waits


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of `stages`, by column; `stage` and `queue` are indexes."""

    time: Ints
    stage: Ints
    queue: Ints
    row: Ints
    count: Ints
    first_uid: Ints
    last_uid: Ints

    def where(self, chosen: NDArray[np.bool_] | Ints) -> Rows:
        """Those that a mask says, or indexes."""
        return Rows(*(getattr(self, name)[chosen] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


class Day:
    """Hours one after the other; what waits longer comes out in a later one."""

    def __init__(self, rows_per_hour: int, queues: int, start_us: int) -> None:
        self._batches = max(rows_per_hour // len(STAGES) // len(ORIGINS), 1)
        self._queues = queues
        self._hour_starts_us = start_us
        self._sequences = dict.fromkeys(ORIGINS, 1)
        self._random = np.random.default_rng(7)
        self._row = 1
        self._late: list[Rows] = []

    def hour(self) -> Rows:
        """All rows of the next hour, sorted as they are filed."""
        starts, ends = self._hour_starts_us, self._hour_starts_us + HOUR_US
        self._hour_starts_us = ends
        rows = Rows.joined([*(self._of(origin, starts) for origin in ORIGINS), *self._late])
        self._late = [rows.where(rows.time >= ends)]
        rows = rows.where(rows.time < ends)
        return rows.where(np.argsort(rows.first_uid, kind="stable"))

    def _of(self, origin: int, starts: int) -> Rows:
        batches, many = self._batches, len(STAGES)
        counts = self._random.integers(1, _LARGEST_BATCH + 1, batches)
        offsets = np.concatenate(([0], np.cumsum(counts)))
        firsts = (origin << SEQUENCE_BITS) + self._sequences[origin] + offsets[:-1]
        self._sequences[origin] += int(offsets[-1])
        times = starts + np.sort(self._random.integers(0, HOUR_US - 20_000, batches))
        waits = np.where(
            self._random.random(batches) < _LATE, self._random.integers(0, _LONGEST_WAIT * HOUR_US, batches), 0
        )
        after = np.array([delay for _, _, delay in STAGES])
        at = times[:, None] + after + waits[:, None] * (np.arange(many) >= _FIRST_LATE)
        queues = self._random.integers(0, self._queues, batches)
        lasts = np.repeat(firsts + counts - 1, many).reshape(batches, many)
        scattered = self._random.random(batches) < _SCATTERED
        lasts[:, -1] += np.where(scattered, self._random.integers(0, _FARTHEST, batches), 0)
        self._row += batches * many
        return Rows(
            time=at.ravel(),
            stage=np.tile(np.arange(many), batches),
            queue=np.repeat(queues, many),
            row=np.arange(self._row - batches * many, self._row),
            count=np.repeat(counts, many),
            first_uid=np.repeat(firsts, many),
            last_uid=lasts.ravel(),
        )
