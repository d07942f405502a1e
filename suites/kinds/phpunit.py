"""PHP: PHPUnit and the library as the system has them, tests from its source."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from suites.failure import NotRun
from suites.junit import read_junit
from suites.kinds.kind import Command, Place

if TYPE_CHECKING:
    from pathlib import Path

    from suites.outcome import Results
    from suites.suite import Suite


class PHPUnit:
    """Installs nothing, reports as JUnit."""

    def prepare(self, suite: Suite, place: Place) -> None:
        if not shutil.which("phpunit"):
            raise NotRun(f"phpunit is not installed (Debian: apt install phpunit {' '.join(suite.install)})")

    def command(self, suite: Suite, place: Place, report: Path) -> Command:
        return Command(["phpunit", "--no-configuration", "--log-junit", str(report), *suite.arguments])

    def read(self, report: Path) -> Results:
        return read_junit(report)
