"""Node: its own test runner; packages that tests want lie above the source, where Node looks for them too."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from suites.command import install
from suites.failure import NotRun
from suites.junit import read_junit
from suites.kinds.kind import Command, Place

if TYPE_CHECKING:
    from pathlib import Path

    from suites.outcome import Results
    from suites.suite import Suite


class Node:
    """Installs with npm, reports as JUnit (Node 20 and newer)."""

    def prepare(self, suite: Suite, place: Place) -> None:
        if not shutil.which("node") or not shutil.which("npm"):
            raise NotRun("node and npm are not installed (Debian: apt install nodejs npm)")
        stamp = place.home / "installed"
        if stamp.exists() and stamp.read_text().split("\n") == list(suite.install):
            return
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(place.home)]
        install([*npm, *suite.install], place.home, place.home / "npm.log")
        stamp.write_text("\n".join(suite.install))

    def command(self, suite: Suite, place: Place, report: Path) -> Command:
        options = ["--test", "--test-reporter=junit", f"--test-reporter-destination={report}"]
        return Command(["node", *options, *suite.arguments])

    def read(self, report: Path) -> Results:
        return read_junit(report)
