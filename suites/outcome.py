"""What became of one test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """From the best to the worst."""

    passed = "passed"
    skipped = "skipped"
    failed = "failed"


@dataclass(frozen=True, slots=True)
class Told:
    """A test's outcome, and what its runner says of it."""

    outcome: Outcome
    text: str = ""


Results = dict[str, Told]
"""By the test's name, as its runner reports it."""

_BADNESS = {outcome: badness for badness, outcome in enumerate(Outcome)}


def add(results: Results, name: str, told: Told) -> None:
    """Enters a test; of several with one name the worst counts."""
    before = results.get(name)
    if before is None or _BADNESS[told.outcome] > _BADNESS[before.outcome]:
        results[name] = told


def count(results: Results, outcome: Outcome) -> int:
    return sum(told.outcome is outcome for told in results.values())
