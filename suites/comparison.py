"""What passes at RabbitMQ and does not here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from suites.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suites.differences import Difference
    from suites.outcome import Results

ABSENT = "did not run: the suite was over, or ended, before its turn"


@dataclass(slots=True)
class Comparison:
    """Tests by name, each with why: the reason that is listed, or what the runner says."""

    unlisted: dict[str, str] = field(default_factory=dict)
    listed: dict[str, str] = field(default_factory=dict)
    unsteady: list[str] = field(default_factory=list)


def compare(suite: str, runs: Sequence[Results], there: Results, differences: Sequence[Difference]) -> Comparison:
    """`runs` are those at Hopline: what failed in the first and passed in a later one is unsteady, no difference."""
    comparison = Comparison()
    for test in sorted(name for name, told in there.items() if told.outcome is Outcome.passed):
        tried = [run[test] for run in runs if test in run]
        reason = next((difference.reason for difference in differences if difference.covers(suite, test)), None)
        if test in runs[0] and runs[0][test].outcome is Outcome.passed:
            continue
        if reason is not None:
            comparison.listed[test] = reason
        elif any(told.outcome is Outcome.passed for told in tried):
            comparison.unsteady.append(test)
        else:
            comparison.unlisted[test] = (tried[-1].text or tried[-1].outcome) if tried else ABSENT
    return comparison
