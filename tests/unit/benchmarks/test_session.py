"""A session goes on behind what fails, and says how far its rounds lie apart."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.failure import BenchmarkError
from benchmarks.report import print_table
from benchmarks.result import Result
from benchmarks.scenarios import SCENARIOS, Context, Scenario
from benchmarks.session import Session
from benchmarks.wire import Address


class Fake:
    """A broker that notes when it is started."""

    name = "fake"
    measures: frozenset[str] | None = None
    queue_type = ""

    def __init__(self, *, starts: int = 100) -> None:
        self.did: list[str] = []
        self._starts = starts

    def missing(self) -> str | None:
        return None

    def start(self, _folder: Path) -> Address:
        if self.did.count("start") == self._starts:
            raise BenchmarkError("it does not start")
        self.did.append("start")
        return Address("nowhere", 1)

    def stop(self) -> None:
        self.did.append("stop")

    def processes(self) -> list[int]:
        return [1]


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def _scenario(name: str, fake: Fake, *, alone: bool = False, failure: Exception | None = None) -> Scenario:
    def run(_context: Context) -> Result:
        fake.did.append(name)
        if failure:
            raise failure
        return Result({"messages/s": float(len(fake.did))})

    return Scenario(name, run, "more", alone=alone)


@pytest.mark.parametrize("failure", [BenchmarkError("lost one"), TimeoutError("timed out"), ConnectionResetError()])
def test_goes_on(monkeypatch: pytest.MonkeyPatch, console: Console, failure: Exception) -> None:
    """Behind a scenario that fails the broker starts anew, and what failed is told."""
    fake = Fake()
    for each in (_scenario("a", fake), _scenario("b", fake, failure=failure), _scenario("c", fake)):
        monkeypatch.setitem(SCENARIOS, each.title, each)
    session = Session(1)
    session.run([fake], ["a", "b", "c"], 2, console)
    turn = ["start", "a", "b", "stop", "start", "c", "stop"]
    assert fake.did == turn + turn
    assert set(session.results) == {"a", "c"}
    assert len(session.failures) == 2
    assert session.failures[0] == f"round 1/2 · fake · b: {str(failure) or 'ConnectionResetError'}"


def test_alone(monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
    """A scenario that wants a broker for itself gets one."""
    fake = Fake()
    for each in (_scenario("a", fake), _scenario("b", fake, alone=True), _scenario("c", fake, alone=True)):
        monkeypatch.setitem(SCENARIOS, each.title, each)
    Session(1).run([fake], ["a", "b", "c"], 1, console)
    assert fake.did == ["start", "a", "stop", "start", "b", "stop", "start", "c", "stop"]


def test_does_not_start(monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
    """A broker that does not start ends a session, which keeps what it has measured."""
    fake = Fake(starts=1)
    monkeypatch.setitem(SCENARIOS, "a", _scenario("a", fake))
    session = Session(1)
    with pytest.raises(BenchmarkError, match="it does not start"):
        session.run([fake], ["a"], 2, console)
    assert session.figure("a", "fake", "messages/s") == 2


def test_spread(monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
    """The table has the median of all rounds, the least and the greatest."""
    fake = Fake()
    monkeypatch.setitem(SCENARIOS, "a", _scenario("a", fake))
    session = Session(1, results={"a": {"fake": [Result({"messages/s": rate}) for rate in (5000.0, 1000.0, 2000.0)]}})
    print_table(session, ["fake"], console)
    assert isinstance(console.file, io.StringIO)
    assert "2,000 1,000 to 5,000" in console.file.getvalue()
