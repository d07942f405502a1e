"""What a way of running has to say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from suites.outcome import Results
    from suites.suite import Suite


@dataclass(frozen=True, slots=True)
class Place:
    """Where a suite lies."""

    home: Path
    """The suite's own folder, kept from run to run: what is installed for it goes there."""
    source: Path
    """Its files; the runner starts there."""


@dataclass(frozen=True, slots=True)
class Command:
    """What is started, and what is added to the environment for it."""

    words: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Kind(Protocol):
    """A runner and its package client."""

    def prepare(self, suite: Suite, place: Place) -> None:
        """Installs the library and what its tests want, once; raises NotRun when that cannot be had."""

    def command(self, suite: Suite, place: Place, report: Path) -> Command:
        """Runs the suite, and has its results in the file `report`."""

    def read(self, report: Path) -> Results:
        """What became of every test; raises NotRun when the runner left no whole report."""
