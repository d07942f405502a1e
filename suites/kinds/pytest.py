"""Python: the library of the index in a virtual environment of its own, its tests from its source."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from suites.command import install
from suites.junit import read_junit
from suites.kinds.kind import Command, Place

if TYPE_CHECKING:
    from pathlib import Path

    from suites.outcome import Results
    from suites.suite import Suite

TEST_SECONDS = 90
TOOLS = ("pytest-timeout>=2.4",)


class Pytest:
    """Installs with pip, reports as JUnit."""

    def prepare(self, suite: Suite, place: Place) -> None:
        wanted = [f"{suite.name}=={suite.version}", *suite.install, *TOOLS]
        stamp = place.home / "installed"
        if stamp.exists() and stamp.read_text().split("\n") == wanted:
            return
        install([sys.executable, "-m", "venv", "--clear", str(place.home / "venv")], place.home, place.home / "pip.log")
        pip = [str(place.home / "venv/bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
        install([*pip, *wanted], place.home, place.home / "pip.log")
        stamp.write_text("\n".join(wanted))

    def command(self, suite: Suite, place: Place, report: Path) -> Command:
        programs = place.home / "venv/bin"
        options = ["-p", "no:cacheprovider", "--timeout", str(TEST_SECONDS), "-ra", f"--junitxml={report}"]
        # Tests start programs of the library by their names.
        path = {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
        return Command([str(programs / "python"), "-m", "pytest", *options, *suite.arguments], path)

    def read(self, report: Path) -> Results:
        return read_junit(report)
