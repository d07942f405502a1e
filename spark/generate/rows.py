"""Rows of the ledger while they are made: columns of numbers, put together at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spark.generate.batches import Ints
from spark.schema import STAGE_NAMES

REASONS = (
    "", "no_route", "overflow", "consumer_gone", "message_ttl", "rejected", "expired", "maxlen", "unroutable",
    "journal",
)  # fmt: skip
OUTCOMES = ("", "accepted", "rejected")

GATEWAY, QUEUE = 0, 1
NO_QUEUE = -1

_COLUMNS = (
    "stage", "service", "time", "gateway", "queue", "epoch", "attempt", "outcome", "reason", "first", "end",
    "second", "second_end", "successor",
)  # fmt: skip


@dataclass(slots=True)
class Rows:
    """Collects rows of two uid ranges at the most: [first, end) and [second, second_end)."""

    parts: dict[str, list[Ints]] = field(default_factory=lambda: {name: [] for name in _COLUMNS})

    def add(self, stage: str, service: int, values: dict[str, Ints | int]) -> None:
        """Adds as many rows as `first` has elements, but for those whose ranges are all empty."""
        first, end = values["first"], values["end"]
        count = len(np.atleast_1d(first))
        second = values.get("second", 0)
        filled = (np.asarray(end) > first) | (np.asarray(values.get("second_end", 0)) > second)
        values = {**values, "stage": STAGE_NAMES.index(stage), "service": service}
        for name in _COLUMNS:
            self.parts[name].append(np.broadcast_to(np.asarray(values.get(name, 0), np.int64), count)[filled])

    def columns(self) -> dict[str, Ints]:
        """All rows; where only the second range has something, it is the first."""
        columns = {name: np.concatenate(parts) for name, parts in self.parts.items()}
        shift = columns["end"] <= columns["first"]
        columns["first"] = np.where(shift, columns["second"], columns["first"])
        columns["end"] = np.where(shift, columns["second_end"], columns["end"])
        columns["second_end"] = np.where(shift, columns["second"], columns["second_end"])
        return columns
