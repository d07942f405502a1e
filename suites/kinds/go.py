"""Go: tests of a library as the system has it, in the places of GOPATH."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from suites.failure import NotRun
from suites.kinds.kind import Command, Place
from suites.outcome import Outcome, Results, Told, add

if TYPE_CHECKING:
    from pathlib import Path

    from suites.suite import Suite

OUTCOMES = {"pass": Outcome.passed, "fail": Outcome.failed, "skip": Outcome.skipped}

# Each test has a process of its own: one that panics takes no other with it.
ONE_BY_ONE = """
tests=$1 report=$2; shift 2
go test -c -vet=off -o "$tests" "$@" || exit
for test in $("$tests" -test.list '^Test'); do
  "$tests" -test.v -test.timeout 90s -test.run "^$test\\$" 2>&1 | go tool test2json
done >"$report"
"""


class Go:
    """Installs nothing, reports as the JSON lines of test2json."""

    def prepare(self, suite: Suite, place: Place) -> None:
        if not shutil.which("go"):
            raise NotRun("go is not installed (Debian: apt install golang-go)")

    def command(self, suite: Suite, place: Place, report: Path) -> Command:
        gopath = str(place.source).partition("/src/")[0]
        environment = {"GO111MODULE": "off", "GOPATH": gopath, "GOFLAGS": "", "GOCACHE": str(place.home / "cache")}
        words = ["sh", "-c", ONE_BY_ONE, "sh", str(place.home / "tests"), str(report), *suite.arguments]
        return Command(words, environment)

    def read(self, report: Path) -> Results:
        results: Results = {}
        said: dict[str, list[str]] = {}
        for line in report.read_text().splitlines() if report.exists() else ():
            event = json.loads(line) if line.startswith("{") else {}
            test = event.get("Test")
            if test and event["Action"] in OUTCOMES:
                add(results, test, Told(OUTCOMES[event["Action"]], "".join(said.get(test, ())).strip()))
            elif test:
                said.setdefault(test, []).append(event.get("Output", ""))
        for test in said.keys() - results.keys():  # what panics has no end
            add(results, test, Told(Outcome.failed, "".join(said[test]).strip()))
        if not results:
            raise NotRun("go test ran nothing")
        return results
