"""What a generated ledger is like, and what can become of messages in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto


class Fate(IntEnum):
    """What becomes of some messages of a batch in a queue; of the others, SETTLED."""

    SETTLED = 0
    WAITING = auto()
    UNSETTLED = auto()
    EXPIRED = auto()
    DEAD_EXPIRED = auto()
    DEAD_REJECTED = auto()
    DEAD_MAXLEN = auto()
    DROPPED = auto()
    REJECTED = auto()
    REDELIVERED = auto()
    NEVER_ENQUEUED = auto()
    NOT_RECOVERED = auto()
    ENQUEUED_TWICE = auto()
    SETTLED_TWICE = auto()
    DELIVERED_AFTER_SETTLED = auto()


class Publish(IntEnum):
    """How a batch fares at the gateway, whole."""

    CONFIRMED = 0
    UNCONFIRMED = auto()  # the publisher did not ask
    RETURNED = auto()
    UNROUTABLE = auto()
    REFUSED = auto()
    ROLLED_BACK = auto()


ORDINARY_FATES = tuple(range(Fate.WAITING, Fate.NEVER_ENQUEUED))
DEAD = (Fate.DEAD_EXPIRED, Fate.DEAD_REJECTED, Fate.DEAD_MAXLEN)
DUPLICATES = (Fate.ENQUEUED_TWICE, Fate.SETTLED_TWICE, Fate.DELIVERED_AFTER_SETTLED)


@dataclass(frozen=True, slots=True)
class Plan:
    """A ledger to generate; the same plan gives the same ledger."""

    rows: int = 1_000_000  # of stages, about
    batch: float = 10.0  # messages in a batch, on average
    queues: int = 40
    skew: float = 0.0  # the share of batches that goes to the first queue
    losses: int = 10  # batches that lose messages
    duplicates: int = 10  # batches with messages twice
    gaps: int = 0
    seed: int = 1
    rate: float = 50_000.0  # messages in a second
    unusual: float = 0.05  # the share of batches of which something else than settling happens to some messages
    fan_out: float = 0.03  # the share of batches that goes to three queues
    batches_of_file: int = 100_000
    ids: bool = False  # whether messages have ids

    @property
    def batches(self) -> int:
        """How many batches give about `rows` rows."""
        each = 9.9 if self.batch > 2 else 8.0 if self.batch <= 1 else 9.0
        return max(1, round(self.rows / each))
