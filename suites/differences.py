"""Tests that fail here on purpose, each with its reason."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).parent / "differences.toml"


@dataclass(frozen=True, slots=True)
class Difference:
    """One or more tests of a suite."""

    suite: str
    test: str
    """A test's name; * stands for anything."""
    told: str
    """The first cell of the row of docs/differences.md that tells users."""
    reason: str

    def covers(self, suite: str, test: str) -> bool:
        # Names have brackets, which mean themselves here.
        return suite == self.suite and fnmatchcase(test, self.test.replace("[", "[[]"))


def listed() -> list[Difference]:
    """All of `differences.toml`; raises TypeError when an entry lacks something or has too much."""
    return [Difference(**entry) for entry in tomllib.loads(FILE.read_text()).get("difference", ())]
