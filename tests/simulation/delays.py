"""How publishers say when a message may be delivered: as a delay, or as a moment, by the names of each protocol."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.simulation.plan import Step
from tests.simulation.world.processes import EPOCH_NS

_EPOCH = EPOCH_NS // 1_000_000  # ms, of the clocks of the world


class Said(NamedTuple):
    """Headers that say it, and the moment on the history's clock for a message sent at some time."""

    headers: dict[str, Any]
    delay: float | None = None  # seconds from when it is sent
    moment: float | None = None

    def due(self, now: float) -> float | None:
        """When what is sent now may be delivered, if that is said."""
        return self.moment if self.delay is None else now + self.delay


def said(step: Step, now: float, *, moments: str = "x-qpid-not-valid-before", delays: str = "x-delay") -> Said:
    """What a publish's step says; without a name for delays it says a moment."""
    if (delay := step.get("delay")) is None:
        return Said({})
    if delays and not step.get("dated"):
        return Said({delays: delay}, delay=delay / 1000)
    moment = _EPOCH + int(now * 1000) + delay
    return Said({moments: moment}, moment=(moment - _EPOCH) / 1000)
