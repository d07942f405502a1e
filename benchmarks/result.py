"""What one run of a scenario on one broker measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.brokers.processes import cpu_seconds


@dataclass(frozen=True, slots=True)
class Result:
    """`figures` by name, with the unit in the name. CPU time is per million messages consumed.

    `notes` are what to read the figures beside: of the machine or of the load, not of the broker.
    """

    figures: dict[str, float]
    generator_cpu: float | None = None
    broker_cpu: float | None = None
    notes: dict[str, float] = field(default_factory=dict)


class Meter:
    """Differences between two moments: CPU time of some processes."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._before = cpu_seconds(pids)

    def per_million(self, messages: int) -> float | None:
        """CPU seconds since the start for each million of `messages`; None without processes or messages."""
        if not self._pids or not messages:
            return None
        return (cpu_seconds(self._pids) - self._before) * 1e6 / messages
