"""One session: the brokers in turns, round by round, each started with an empty folder for its turn."""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich.markup import escape

from benchmarks.brokers.processes import allow_many_files
from benchmarks.failure import BenchmarkError
from benchmarks.scenarios import RATE_FIGURE, RATE_SCENARIO, SCENARIOS, Context

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from benchmarks.brokers import Broker
    from benchmarks.result import Result
    from benchmarks.wire import Address

OUT = Path(__file__).parent / "out"
PEER = "rabbitmq"
DEFAULT_RATE = 40_000.0
"""Latency is measured at this rate when no peer runs whose throughput could be halved: half of what RabbitMQ 3.10
reaches on two cores."""
PROBE_SECONDS = 3.0


@dataclass(slots=True)
class Session:
    """What was measured so far: results by scenario and broker, one per round."""

    seconds: float
    rate: float = 0.0
    results: dict[str, dict[str, list[Result]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """What could not be measured, where, and why."""

    def run(self, brokers: Sequence[Broker], scenarios: Sequence[str], rounds: int, console: Console) -> None:
        """Measures everything, also behind what fails. Raises BenchmarkError where a broker does not start."""
        allow_many_files()
        if "latency" in scenarios and not self.rate:
            self.rate = self._rate_for_latency(brokers, console)
        for number in range(1, rounds + 1):
            for broker in brokers:
                mine = [name for name in scenarios if broker.measures is None or name in broker.measures]
                for portion in _portions(mine):
                    self._measure_all(portion, broker, console, f"round {number}/{rounds}")

    def figure(self, scenario: str, broker: str, figure: str) -> float | None:
        """The median over the rounds, or None when it was not measured."""
        values = self.values(scenario, broker, figure)
        return median(values) if values else None

    def values(self, scenario: str, broker: str, figure: str) -> list[float]:
        """Of each round in which it was measured."""
        return [result.figures[figure] for result in self.results.get(scenario, {}).get(broker, [])]

    def _rate_for_latency(self, brokers: Sequence[Broker], console: Console) -> float:
        # Both must be measured at one rate in every round, so it has to be known before the first.
        peer = next((broker for broker in brokers if broker.name == PEER), None)
        if peer is None:
            return DEFAULT_RATE
        with _serving(peer) as address:
            scenario = SCENARIOS[RATE_SCENARIO].run(Context(peer, address, PROBE_SECONDS, 0))
        rate = scenario.figures[RATE_FIGURE] / 2
        console.print(f"latency will be measured at {rate:,.0f} messages/s, half of what {PEER} reaches with acks")
        return rate

    def _measure_all(self, scenarios: Sequence[str], broker: Broker, console: Console, where: str) -> None:
        """One start of the broker for all of them, and another one behind each that fails."""
        left = deque(scenarios)
        while left:
            with _serving(broker) as address:
                while left and self._is_measured(left.popleft(), broker, address, console, where):
                    pass

    def _is_measured(self, scenario: str, broker: Broker, address: Address, console: Console, where: str) -> bool:
        try:
            self._measure(scenario, broker, address, console, where)
        except (BenchmarkError, OSError) as failure:  # OSError: among others, a broker that does not answer in time
            said = f"{where} · {broker.name} · {SCENARIOS[scenario].title}: {str(failure) or type(failure).__name__}"
            self.failures.append(said)
            console.print(f"[red]{escape(said)}[/]", highlight=False)
            return False
        return True

    def _measure(self, scenario: str, broker: Broker, address: Address, console: Console, where: str) -> None:
        if SCENARIOS[scenario].alone and not broker.processes():
            return
        result = SCENARIOS[scenario].run(Context(broker, address, self.seconds, self.rate))
        self.results.setdefault(scenario, {}).setdefault(broker.name, []).append(result)
        figures = ", ".join(
            f"{value:,.3g} {name}" if value < 100 else f"{value:,.0f} {name}" for name, value in result.figures.items()
        )
        console.print(f"{where} · {broker.name} · {SCENARIOS[scenario].title}: {figures}")


def _portions(scenarios: Sequence[str]) -> Iterator[list[str]]:
    """Those that one start of a broker serves, in their order."""
    for alone, group in groupby(scenarios, lambda name: SCENARIOS[name].alone):
        names = list(group)
        yield from ([name] for name in names) if alone else [names]


@contextmanager
def _serving(broker: Broker) -> Iterator[Address]:
    # Not in the system's temporary folder, which may be memory: what persistent messages cost is a disk's syncs.
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{broker.name.replace(' ', '-')}-", dir=OUT))
    try:
        yield broker.start(folder)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)
