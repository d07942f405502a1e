"""Something that some histories have besides: drawn apart, so that all else of a seed is as without it."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from tests.simulation.plan import Step


class Feature:
    """Of one virtual host's load. SHARE of histories have it, of those of kind "features" OFTEN."""

    SHARE: ClassVar[float]
    OFTEN = 0.35

    def __init__(self, seed: str, kind: str) -> None:
        self.rng = Random(f"{type(self).__name__} {seed}")
        self.on = self.rng.random() < (self.OFTEN if kind == "features" else self.SHARE)

    def queue(self, step: Step) -> None:
        """May add arguments to a queue's declaration."""

    def publish(self, step: Step) -> None:
        """May add to a publish's step, of any protocol."""

    def consume(self, step: Step) -> None:
        """May add to a consumer's step, of any protocol."""

    def own(self, step: Step) -> None:
        """May add to the declaration of a connection's own queue."""

    def steps(self) -> list[Step]:
        """What the client that changes the topology does in the end."""
        return []

    def faults(self, seconds: float, shape: Step) -> list[Step]:
        """More of them, of histories that have faults."""
        del seconds, shape
        return []


def to_queue(step: Step, name: str) -> None:
    """A publish of any protocol goes there instead."""
    step |= {"exchange": "", "keys": [name], **({"address": name, "subject": False} if "address" in step else {})}
