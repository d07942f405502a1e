"""Runs suites at the brokers, one after the other."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from suites.brokers import HOPLINE, RABBITMQ, answers, serving
from suites.command import run
from suites.comparison import Comparison, compare
from suites.differences import listed
from suites.failure import NotRun
from suites.kinds import KINDS
from suites.kinds.kind import Place
from suites.sources import bring

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.wire import Address
    from suites.outcome import Results
    from suites.suite import Suite


@dataclass(slots=True)
class Played:
    """What became of a suite."""

    suite: Suite
    results: dict[str, Results] = field(default_factory=dict)
    """By broker; of Hopline the first run."""
    not_run: dict[str, str] = field(default_factory=dict)
    """By broker, why."""
    overdue: set[str] = field(default_factory=set)
    """The brokers at which its time was up."""
    gone: set[str] = field(default_factory=set)
    """The brokers that took no connections when a run was over."""
    comparison: Comparison = field(default_factory=Comparison)

    @property
    def well(self) -> bool:
        """Whether Hopline did all that RabbitMQ does, as far as was tried."""
        only_there = RABBITMQ in self.results and HOPLINE in self.not_run
        return not (only_there or HOPLINE in self.gone or self.comparison.unlisted)


@dataclass(frozen=True, slots=True)
class Session:
    """Folders of a run, and where to report progress."""

    work: Path
    sources: Path | None
    say: Callable[[str], None]

    def play(self, suite: Suite, brokers: Sequence[str]) -> Played:
        """Installs `suite` and runs it at `brokers`; where it differs it is run at Hopline once more."""
        played = Played(suite)
        try:
            place = self.prepare(suite)
        except NotRun as failure:
            played.not_run = dict.fromkeys(brokers, str(failure))
            return played
        for broker in brokers:
            self._run(played, place, broker)
        if HOPLINE in played.results and RABBITMQ in played.results:
            self._compare(played, place)
        return played

    def prepare(self, suite: Suite) -> Place:
        """Has the suite's files and all that it wants; raises NotRun."""
        home = self.work / f"{suite.name}-{suite.version}"
        home.mkdir(parents=True, exist_ok=True)
        self.say(f"{suite.name}: getting ready")
        place = Place(home, bring(suite, self.sources, home))
        KINDS[suite.kind].prepare(suite, place)
        return place

    def _run(self, played: Played, place: Place, broker: str) -> None:
        try:
            played.results[broker] = self._results(played, place, broker)
        except NotRun as failure:
            played.not_run[broker] = str(failure)

    def _results(self, played: Played, place: Place, broker: str, again: str = "") -> Results:
        suite = played.suite
        stem = f"{broker}-{again}" if again else broker
        self.say(f"{suite.name}: at {broker} {again or 'now'}, up to {suite.seconds:.0f} s")
        log, report = place.home / f"{stem}.log", place.home / f"{stem}.report"
        for old in (log, report):
            old.unlink(missing_ok=True)
        with serving(broker, suite, place.home / f"{stem}.broker.log") as address:
            command = KINDS[suite.kind].command(suite, place, report)
            environment = {**command.environment, **_told(suite, address)}
            if not run(command.words, place.source, log, suite.seconds, environment):
                played.overdue.add(broker)
            if not answers(address):
                played.gone.add(broker)
        return KINDS[suite.kind].read(report)

    def _compare(self, played: Played, place: Place) -> None:
        runs, there, differences = [played.results[HOPLINE]], played.results[RABBITMQ], listed()
        played.comparison = compare(played.suite.name, runs, there, differences)
        if played.comparison.unlisted:
            try:
                runs.append(self._results(played, place, HOPLINE, "again"))
            except NotRun as failure:
                self.say(f"{played.suite.name} was not run again: {failure}")
            played.comparison = compare(played.suite.name, runs, there, differences)


def _told(suite: Suite, address: Address) -> dict[str, str]:
    url = f"amqp://{address.user}:{address.password}@{address.host}:{address.port}/"
    known = {"host": address.host, "port": str(address.port), "url": url}
    return {name: value.format(**known) for name, value in suite.environment.items()}


def limited(suite: Suite, seconds: float | None) -> Suite:
    """The suite with another limit, when one is given."""
    return dataclasses.replace(suite, seconds=seconds) if seconds else suite
