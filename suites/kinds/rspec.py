"""Ruby: RSpec and the library as the system has them, specs from its source."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from suites.failure import NotRun
from suites.kinds.kind import Command, Place
from suites.outcome import Outcome, Results, Told, add

if TYPE_CHECKING:
    from pathlib import Path

    from suites.suite import Suite

OUTCOMES = {"passed": Outcome.passed, "failed": Outcome.failed, "pending": Outcome.skipped}


class RSpec:
    """Installs nothing, reports as RSpec's JSON."""

    def prepare(self, suite: Suite, place: Place) -> None:
        if not shutil.which("rspec"):
            raise NotRun(f"rspec is not installed (Debian: apt install ruby-rspec {' '.join(suite.install)})")

    def command(self, suite: Suite, place: Place, report: Path) -> Command:
        formats = ["--format", "documentation", "--format", "json", "--out", str(report)]
        return Command(["rspec", *formats, *suite.arguments])

    def read(self, report: Path) -> Results:
        try:
            told = json.loads(report.read_text())
        except (OSError, ValueError) as failure:
            raise NotRun(f"rspec wrote no readable report ({failure})") from failure
        results: Results = {}
        for example in told["examples"]:
            add(results, example["full_description"], _told(example))
        if not results:
            raise NotRun(f"rspec ran nothing: {told['summary_line']}")
        return results


def _told(example: dict[str, Any]) -> Told:
    return Told(OUTCOMES[example["status"]], example.get("exception", {}).get("message", "").strip())
